"""Finds a Java for Kafka and Spark, or names the remedy when there is none."""

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
    ("banner", "modules", "expected"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "jdk.incubator.vector@11", "is Java 11"),
        ('openjdk version "25" 2025-09-16', "jdk.incubator.vector@25", "is Java 25"),
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
    assert "Install a JDK 17" in str(raised.value)


def test_without_any_java_the_message_mentions_java_home() -> None:
    with pytest.raises(JavaNotFoundError, match="JAVA_HOME is not set"):
        find_java({"PATH": ""})
