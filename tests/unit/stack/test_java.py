"""Finds a Java for Kafka and Spark, or names the remedy when there is none."""

import re
from pathlib import Path

import pytest

from stack.provisioning import java
from stack.provisioning.java import Java, JavaNotFoundError, find_java


@pytest.fixture(autouse=True)
def only_the_java_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "USUAL_FOLDERS", ())


def fake_java(home: Path, banner: str, modules: str = "jdk.incubator.vector@17") -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(
        f"#!/bin/sh\nif [ $1 = -version ]; then echo '{banner}' >&2; else echo '{modules}'; fi\n"
    )
    binary.chmod(0o755)
    return home


def test_java_home_takes_precedence_over_the_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", 'openjdk version "21.0.2" 2024-01-16')
    on_path = fake_java(tmp_path / "path", 'openjdk version "17.0.15" 2025-04-15')

    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})

    assert found == Java(home, 21)


def test_a_too_old_java_is_skipped(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", 'java version "1.8.0_402"')
    good = fake_java(tmp_path / "good", 'openjdk version "17.0.15" 2025-04-15')

    found = find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")})

    assert found == Java(good, 17)


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21.0.2" 2024-01-16 LTS', 21),
        ('openjdk version "24" 2025-03-18', 24),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ('openjdk version "25.0.3" 2026-04-21 LTS', 25),
    ],
)
def test_every_java_of_the_readme_is_accepted(tmp_path: Path, banner: str, version: int) -> None:
    home = fake_java(tmp_path / "home", banner)

    assert find_java({"JAVA_HOME": str(home), "PATH": ""}) == Java(home, version)


@pytest.mark.parametrize("folder", ["java-17-openjdk", "openjdk-21", "temurin-25-jdk"])
def test_a_java_in_the_systems_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    version = re.sub(r"\D", "", folder)
    home = fake_java(tmp_path / folder, f'openjdk version "{version}.0.1" 2025-09-16')
    monkeypatch.setattr(java, "USUAL_FOLDERS", (str(tmp_path),))

    assert find_java({"PATH": ""}) == Java(home, int(version))


@pytest.mark.parametrize(
    ("banner", "modules", "expected"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "jdk.incubator.vector@11", "is Java 11"),
        ('openjdk version "26-ea" 2026-03-17', "jdk.incubator.vector@26", "is Java 26"),
        ('openjdk version "17.0.15"', "java.base@17", "without the module jdk.incubator.vector"),
        ("no such thing", "", "prints no version"),
    ],
)
def test_without_a_usable_java_the_message_lists_candidates_and_remedy(
    tmp_path: Path, banner: str, modules: str, expected: str
) -> None:
    home = fake_java(tmp_path / "home", banner, modules)

    with pytest.raises(JavaNotFoundError) as raised:
        find_java({"JAVA_HOME": str(home), "PATH": ""})

    assert expected in str(raised.value)
    assert "Foldlake needs Java 17 to 25" in str(raised.value)
    assert "Install OpenJDK 17 or 21 or 25" in str(raised.value)


def test_without_any_java_the_message_mentions_java_home() -> None:
    with pytest.raises(JavaNotFoundError, match="JAVA_HOME is not set"):
        find_java({"PATH": ""})
