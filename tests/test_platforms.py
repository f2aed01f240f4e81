"""Nothing that only one system has is used without a guard. The suite itself has run on Linux only."""

import ast
from pathlib import Path

import solid_bandits

ROOT = Path(solid_bandits.__file__).parent

# Modules and attributes that Windows, macOS or both lack.
MODULES = {
    "fcntl",
    "resource",
    "pwd",
    "grp",
    "termios",
    "tty",
    "pty",
    "winreg",
    "msvcrt",
    "posix",
    "nt",
    "syslog",
}
ATTRIBUTES = {
    *(
        "fork",
        "forkpty",
        "getuid",
        "geteuid",
        "getgid",
        "getegid",
        "setsid",
        "killpg",
        "getpgid",
        "chown",
        "mkfifo",
    ),
    *(
        "sysconf",
        "sched_getaffinity",
        "nice",
        "getloadavg",
        "posix_fallocate",
        "O_DIRECT",
        "uname",
        "statvfs",
    ),
    *(
        "SIGKILL",
        "SIGHUP",
        "SIGUSR1",
        "SIGUSR2",
        "SIGALRM",
        "SIGCHLD",
        "SIGQUIT",
        "setitimer",
        "alarm",
        "pause",
    ),
    *("clock_gettime", "CLOCK_BOOTTIME", "tzset"),
}
FILES = ("/proc/", "/dev/", "/sys/", "/etc/")

# Where they stand, and what guards them.
GUARDED = {
    ("_internal/sources.py", "/proc/self/stat"): "an error means: not to be found out",
    ("_internal/sources.py", "clock_gettime"): "the same",
    ("_internal/sources.py", "CLOCK_BOOTTIME"): "the same",
    ("_internal/sources.py", "sysconf"): "the same",
    ("_internal/kernel_cache.py", "getuid"): "hasattr",
    ("paper/invocations.py", "/proc/cpuinfo"): "an error means: another name",
    ("service/helpers.py", "SIGKILL"): "an error means: without it",
    ("service/helpers.py", "/proc/self/oom_score_adj"): "the same",
    ("service/helpers.py", "nice"): "the same",
    ("service/server.py", "resource"): "sys.platform",
    ("simulation/workers.py", "SIGKILL"): "sys.platform",
}


def test_what_one_system_alone_has_is_guarded():
    found = set()
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {(name, one.name) for one in node.names if one.name.partition(".")[0] in MODULES}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
                found.add((name, node.module))
            elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
                found |= {(name, node.attr)} if isinstance(node.value, ast.Name) else set()
            elif isinstance(node, ast.Constant) and str(node.value).startswith(FILES):
                found.add((name, node.value))
    assert found == set(GUARDED)
