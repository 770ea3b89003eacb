"""What Foldlake needs of a machine: the one source for `./foldlake`, its doctor, and the tests of the documentation.

The script `foldlake` imports it with the machine's `python3`, which may be old: use only Python 3.6 syntax in this file.
"""

# The versions that lock files and tests cover, and the oldest of them: Debian 12's.
PYTHONS = ((3, 11), (3, 12))
OLDEST_PYTHON = (3, 11, 2)

OLDEST_JAVA, NEWEST_JAVA = 17, 25
# Of packages: the machine's system may have any of them.
LONG_TERM_JAVAS = (17, 21, 25)

# For the stack with its defaults, and while one lake job runs beside it (every five minutes).
STACK_MEMORY_GB = 4
MEMORY_GB = 6

# Measured: 3.1 GB and 34,000 files when done, and as much again for the installer's cache if it is on the same disk.
DISK_GB = 6
TOOLS_FILES = 80_000
DOWNLOAD_GB = 1.5

BYTES_PER_GB = 10**9


def python_text() -> str:
    """Return the supported versions of Python, such as `3.11 or 3.12`."""
    return " or ".join("{}.{}".format(*version) for version in PYTHONS)


def java_text() -> str:
    """Return the supported versions of Java, such as `17 to 25`."""
    return "{} to {}".format(OLDEST_JAVA, NEWEST_JAVA)


def python_remedy() -> str:
    """Return what to do on a machine without a supported Python."""
    return (
        "Install Python {}.{} with its venv module (Debian 12: python3-venv; others: python{}.{} and python{}.{}-venv) "
        "so that `python{}.{}` is on the PATH".format(*PYTHONS[0] * 4)
    )


def java_remedy() -> str:
    """Return what to do on a machine without a supported Java."""
    return (
        "Install OpenJDK {} (Debian 12: openjdk-17-jdk-headless; Debian 13: openjdk-21-jdk-headless), "
        "or set JAVA_HOME to an installed one".format(" or ".join(map(str, LONG_TERM_JAVAS)))
    )
