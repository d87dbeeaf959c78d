"""The machine a figure was measured on: no figure is quoted without it."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{_processor()}, {cores} cores, {_memory_gb():.0f} GB, {platform.system()}, Python {platform.python_version()}"
    )


def _processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
