/* Stands between a process and its file system, for the files below one folder.
 *
 * It writes down what is written, cut, made, linked, removed and synced, so that a disk can be built as it may look
 * after the power fails at any moment; and it lets chosen calls fail, as a full or broken disk does. Loaded with
 * LD_PRELOAD by disk.py, which calls the functions at the end. Nothing happens before they are called. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 4096
#define SHORT_WRITE (-1)

static char root[4096];
static size_t root_length;
static int log_file = -1;
static unsigned long inode_of[MOST_FILES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int fault_error;       /* an errno, or SHORT_WRITE; 0 while nothing fails */
static long fault_at, fault_count, calls;
static char fault_call[64];   /* the first call that failed */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static ssize_t real_write(int fd, const void *data, size_t size) {
    static __typeof__(&write) real;
    if (!real) real = REAL(write);
    return real(fd, data, size);
}

static int below(const char *path) {
    if (!root_length || !path || strncmp(path, root, root_length) != 0) return 0;
    return path[root_length] == '/' || path[root_length] == 0;
}

static unsigned long tracked(int fd) {
    return root_length && fd >= 0 && fd < MOST_FILES ? inode_of[fd] : 0;
}

static void note(const void *data, size_t size, const char *format, ...) {
    char line[8192];
    va_list values;
    if (log_file < 0) return;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    pthread_mutex_lock(&lock);
    real_write(log_file, line, (size_t)length);
    if (size) real_write(log_file, data, size);
    pthread_mutex_unlock(&lock);
}

/* Returns whether this call has to fail; then errno is set. Only calls that can fail this way are counted. */
static int fails(const char *name, int writes) {
    if (!fault_error) return 0;
    if (fault_error == SHORT_WRITE ? !strstr(name, "write") : fault_error != EIO && !writes) return 0;
    long call = ++calls;
    if (call < fault_at || call >= fault_at + fault_count) return 0;
    if (!fault_call[0]) snprintf(fault_call, sizeof fault_call, "%s", name);
    if (fault_error != SHORT_WRITE) errno = fault_error;
    return 1;
}

static int opened(const char *path, int flags, mode_t mode, int (*real)(const char *, int, ...)) {
    if (!below(path)) return real(path, flags, mode);
    int writes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
    if (fails("open", writes)) return -1;
    struct stat status;
    int was_there = lstat(path, &status) == 0;
    int fd = real(path, flags, mode);
    if (fd < 0 || fd >= MOST_FILES || fstat(fd, &status) != 0) return fd;
    inode_of[fd] = status.st_ino;
    if (!was_there) note(NULL, 0, "create %lu %s\n", status.st_ino, path);
    else if (flags & O_TRUNC) note(NULL, 0, "cut %lu 0\n", status.st_ino);
    return fd;
}

#define OPEN(name)                                                      \
    int name(const char *path, int flags, ...) {                        \
        mode_t mode = 0;                                                \
        if (flags & (O_CREAT | O_TMPFILE)) {                            \
            va_list values;                                             \
            va_start(values, flags);                                    \
            mode = va_arg(values, mode_t);                              \
            va_end(values);                                             \
        }                                                               \
        return opened(path, flags, mode, (int (*)(const char *, int, ...))REAL(name)); \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    if (fd >= 0 && fd < MOST_FILES) inode_of[fd] = 0;
    return REAL(close)(fd);
}

static ssize_t written(const char *name, int fd, const void *data, size_t size, off_t at, ssize_t (*real)(int, const void *, size_t, off_t)) {
    unsigned long inode = tracked(fd);
    if (inode && fails(name, 1)) {
        if (fault_error != SHORT_WRITE) return -1;
        size = size > 1 ? size / 2 : size;
    }
    ssize_t done = real(fd, data, size, at);
    if (inode && done > 0) note(data, (size_t)done, "write %lu %ld %ld\n", inode, (long)at, (long)done);
    return done;
}

static ssize_t write_here(int fd, const void *data, size_t size, off_t at) {
    (void)at;
    return real_write(fd, data, size);
}

ssize_t write(int fd, const void *data, size_t size) {
    if (!tracked(fd)) return real_write(fd, data, size);
    int appends = fcntl(fd, F_GETFL) & O_APPEND;
    return written("write", fd, data, size, lseek(fd, 0, appends ? SEEK_END : SEEK_CUR), write_here);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return written("pwrite", fd, data, size, at, REAL(pwrite));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return written("pwrite", fd, data, size, at, REAL(pwrite64));
}

#define SYNC(name)                                              \
    int name(int fd) {                                          \
        unsigned long inode = tracked(fd);                      \
        if (inode && fails(#name, 1)) return -1;                \
        int result = REAL(name)(fd);                            \
        if (inode && result == 0) note(NULL, 0, "sync %lu\n", inode); \
        return result;                                          \
    }
SYNC(fsync)
SYNC(fdatasync)

#define CUT(name, offset)                                       \
    int name(int fd, offset size) {                             \
        unsigned long inode = tracked(fd);                      \
        if (inode && fails("ftruncate", 1)) return -1;          \
        int result = REAL(name)(fd, size);                      \
        if (inode && result == 0) note(NULL, 0, "cut %lu %ld\n", inode, (long)size); \
        return result;                                          \
    }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

int unlink(const char *path) {
    if (below(path) && fails("unlink", 1)) return -1;
    int result = REAL(unlink)(path);
    if (result == 0 && below(path)) note(NULL, 0, "unlink %s\n", path);
    return result;
}

int link(const char *from, const char *to) {
    if (below(to) && fails("link", 1)) return -1;
    int result = REAL(link)(from, to);
    struct stat status;
    if (result == 0 && below(to) && lstat(to, &status) == 0) note(NULL, 0, "link %lu %s\n", status.st_ino, to);
    return result;
}

int linkat(int here, const char *from, int there, const char *to, int flags) {
    if (below(to) && fails("link", 1)) return -1;
    int result = REAL(linkat)(here, from, there, to, flags);
    struct stat status;
    if (result == 0 && below(to) && lstat(to, &status) == 0) note(NULL, 0, "link %lu %s\n", status.st_ino, to);
    return result;
}

int rename(const char *from, const char *to) {
    if (below(to) && fails("rename", 1)) return -1;
    int result = REAL(rename)(from, to);
    if (result == 0 && below(to)) note(NULL, 0, "rename %s %s\n", from, to);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    if (below(path) && fails("mkdir", 1)) return -1;
    int result = REAL(mkdir)(path, mode);
    struct stat status;
    if (result == 0 && below(path) && lstat(path, &status) == 0) note(NULL, 0, "mkdir %lu %s\n", status.st_ino, path);
    return result;
}

/* What disk.py calls. */

void torture_watch(const char *folder) {
    snprintf(root, sizeof root, "%s", folder);
    memset(inode_of, 0, sizeof inode_of);
    root_length = strlen(root);
}

void torture_record(const char *path) {
    log_file = ((int (*)(const char *, int, ...))REAL(open))(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

void torture_fail(int error, long at, long count) {
    calls = 0;
    fault_at = at;
    fault_count = count;
    fault_call[0] = 0;
    fault_error = error;
}

void torture_heal(void) { fault_error = 0; }
long torture_calls(void) { return calls; }
const char *torture_failed_call(void) { return fault_call; }
