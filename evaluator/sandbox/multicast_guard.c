/* Ends who calls NVLink multicast: loaded into every process of a sandbox before anything else.
 *
 * Whatever the loader resolves gets these functions: linked by name, asked for by dlsym or dlvsym,
 * or by the driver's own cuGetProcAddress. Asking is free; calling ends the sandbox. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MULTICAST_SUPPORTED 132 /* CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED of cuda.h */
#define NEW_LOOKUP 12000        /* the CUDA version since which cuGetProcAddress is its _v2 */

typedef void *(*Dlsym)(void *, const char *);
typedef void *(*Dlvsym)(void *, const char *, const char *);
typedef int (*Lookup)(const char *, void **, int, uint64_t);
typedef int (*Lookup2)(const char *, void **, int, uint64_t, void *);
typedef int (*Attribute)(int *, int, int);

static Dlsym real_dlsym;
static Dlvsym real_dlvsym;

static int forbidden(void) {
    static const char said[] = "NVLink multicast is off on this host: the run ends here\n";
    if (write(STDERR_FILENO, said, sizeof said - 1) < 0) { /* it ends all the same */ }
    kill(0, ENDING_SIGNAL); /* the launcher is of this group: with it all ends */
    _exit(1);
}

#define FORBIDDEN(name) EXPORT int name(void) __attribute__((alias("forbidden")));
FORBIDDEN(cuMulticastCreate)
FORBIDDEN(cuMulticastAddDevice)
FORBIDDEN(cuMulticastBindMem)
FORBIDDEN(cuMulticastBindMem_v2)
FORBIDDEN(cuMulticastBindAddr)
FORBIDDEN(cuMulticastBindAddr_v2)

EXPORT int cuGetProcAddress(const char *, void **, int, uint64_t);
EXPORT int cuGetProcAddress_v2(const char *, void **, int, uint64_t, void *);
EXPORT int cuDeviceGetAttribute(int *, int, int);

static const struct { const char *name; void *own; } replaced[] = {
    {"cuMulticastCreate", forbidden},
    {"cuMulticastAddDevice", forbidden},
    {"cuMulticastBindMem", forbidden},
    {"cuMulticastBindMem_v2", forbidden},
    {"cuMulticastBindAddr", forbidden},
    {"cuMulticastBindAddr_v2", forbidden},
    {"cuGetProcAddress", cuGetProcAddress},
    {"cuGetProcAddress_v2", cuGetProcAddress_v2},
    {"cuDeviceGetAttribute", cuDeviceGetAttribute},
    {"dlsym", dlsym},
    {"dlvsym", dlvsym},
};

static void *own(const char *name) {
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (!strcmp(name, replaced[i].name)) return replaced[i].own;
    return NULL;
}

/* libc's own dlsym cannot be asked for by name here, where that name is ours. */
static int find_real(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    const char *file = strrchr(object->dlpi_name, '/');
    if (!file || (strncmp(file, "/libc.so", 8) && strncmp(file, "/libdl.so", 9))) return 0;
    const ElfW(Sym) *symbol = NULL;
    const char *strings = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_SYMTAB) symbol = (void *)entry->d_un.d_ptr;
            if (entry->d_tag == DT_STRTAB) strings = (void *)entry->d_un.d_ptr;
        }
    }
    for (; symbol && (const char *)symbol < strings; symbol++) {
        void *address = (void *)(object->dlpi_addr + symbol->st_value);
        if (!symbol->st_value) continue;
        if (!strcmp(strings + symbol->st_name, "dlsym")) real_dlsym = (Dlsym)address;
        if (!strcmp(strings + symbol->st_name, "dlvsym")) real_dlvsym = (Dlvsym)address;
    }
    return real_dlsym && real_dlvsym;
}

/* Both end in a jump, so that libc sees who asks: what RTLD_NEXT means depends on that. */
EXPORT void *dlsym(void *handle, const char *name) {
    if (!real_dlsym) dl_iterate_phdr(find_real, NULL);
    void *instead = own(name);
    if (instead) return real_dlsym(handle, name) ? instead : NULL;
    return real_dlsym(handle, name);
}

EXPORT void *dlvsym(void *handle, const char *name, const char *version) {
    if (!real_dlvsym) dl_iterate_phdr(find_real, NULL);
    void *instead = own(name);
    if (instead) return real_dlvsym(handle, name, version) ? instead : NULL;
    return real_dlvsym(handle, name, version);
}

static void *drivers_own(const char *name) {
    if (!real_dlsym) dl_iterate_phdr(find_real, NULL);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    return driver ? real_dlsym(driver, name) : NULL;
}

static int replace(int status, const char *name, void **found, int version) {
    void *instead = status || !found || !*found ? NULL : own(name);
    if (instead == (void *)cuGetProcAddress && version >= NEW_LOOKUP)
        instead = (void *)cuGetProcAddress_v2;
    if (instead) *found = instead;
    return status;
}

#define NOT_FOUND 500 /* CUDA_ERROR_NOT_FOUND */

EXPORT int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    Lookup real = (Lookup)drivers_own("cuGetProcAddress");
    return real ? replace(real(name, found, version, flags), name, found, version) : NOT_FOUND;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags,
                               void *status) {
    Lookup2 real = (Lookup2)drivers_own("cuGetProcAddress_v2");
    return real ? replace(real(name, found, version, flags, status), name, found, version)
                : NOT_FOUND;
}

/* A kernel that asks before it uses multicast is told that there is none, and goes another way. */
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static Attribute real;
    if (!real) real = (Attribute)drivers_own("cuDeviceGetAttribute");
    int status = real ? real(value, attribute, device) : NOT_FOUND;
    if (!status && attribute == MULTICAST_SUPPORTED) *value = 0;
    return status;
}
