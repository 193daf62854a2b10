"""A driver that only says what was called: what ranks find where a GPU's would be."""

from __future__ import annotations

import subprocess
from pathlib import Path

SAYS_CREATED, SAYS_SUPPORTED = "the driver made a multicast object", "multicast is supported"

_DRIVER = f"""
#include <stdio.h>
#include <stdint.h>
#include <string.h>
int cuMulticastCreate(void *handle, void *wanted) {{
    printf("{SAYS_CREATED}\\n"); fflush(stdout);
    return 0;
}}
int cuMulticastBindMem_v2(void) {{ return cuMulticastCreate(0, 0); }}
int cuInit(unsigned flags) {{ return 0; }}
int cuDeviceGetAttribute(int *value, int attribute, int device) {{
    *value = attribute;
    return 0;
}}
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {{
    *found = !strcmp(name, "cuMulticastCreate") ? (void *)cuMulticastCreate
           : !strcmp(name, "cuInit") ? (void *)cuInit
           : !strcmp(name, "cuGetProcAddress")
               ? version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2
           : 0;
    return *found ? 0 : 500;
}}
int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {{
    *status = 7;
    return cuGetProcAddress(name, found, version, flags);
}}
"""


def build_driver(folder: Path) -> Path:
    """Return `libcuda.so.1`, in `folder`."""
    return build(folder, "libcuda.so.1", _DRIVER, "-Wl,-soname,libcuda.so.1")


def build(folder: Path, name: str, source: str, *options: str) -> Path:
    """Return a library or, with `-pie` among the options, a program made of C."""
    library = folder / name
    kind = [] if "-pie" in options else ["-shared"]
    subprocess.run(
        ["gcc", "-x", "c", "-fPIC", *kind, "-o", str(library), "-", "-x", "none", *options],
        input=source.encode(),
        check=True,
    )
    return library
