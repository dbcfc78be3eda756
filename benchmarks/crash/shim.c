/* Counts the calls that change files below a folder, and makes one of them fail or kill.

   Loaded by LD_PRELOAD; it does nothing until `arm` is called. A call is counted before it is made.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL, TEAR, FAIL_ONCE, FAIL_FROM };

static char folder[PATH_MAX];
static size_t folder_length;
static long count, target;
static int action, failure, notes = -1;

void arm(const char *where, int what, long at, int error) {
    strncpy(folder, where, sizeof folder - 1);
    folder_length = strlen(folder);
    count = 0;
    action = what;
    target = at;
    failure = error;
}

void take_notes(int fd) { notes = fd; }

long disarm(void) {
    folder_length = 0;
    return count;
}

static int below(const char *path) {
    return folder_length && strncmp(path, folder, folder_length) == 0;
}

static int watched(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder_length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static __attribute__((noreturn)) void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* What is to happen to this call: nothing, or one of the actions. */
static int turn(void) {
    long now = ++count;
    if (action == FAIL_FROM) return now >= target ? FAIL_ONCE : COUNT;
    return now == target ? action : COUNT;
}

/* Calls are noted in the order in which they are made, with their bytes. */
static void note(char kind, const char *path, const void *bytes, long length, long offset) {
    long header[4] = {kind, (long)strlen(path), length, offset};
    long stored = bytes ? length : 0;
    if (syscall(SYS_write, notes, header, sizeof header) < 0 ||
        syscall(SYS_write, notes, path, header[1]) < 0 ||
        (stored && syscall(SYS_write, notes, bytes, stored) < 0))
        die();
}

static void note_fd(char kind, int fd, const void *bytes, long length, long offset) {
    char link[64], path[PATH_MAX];
    if (notes < 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    note(kind, path, bytes, length, offset);
}

#define REAL(name)                                                            \
    static __typeof__(&name) real;                                            \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WITHOUT_BYTES(name, parameters, arguments, here, noted)               \
    int name parameters {                                                     \
        REAL(name);                                                           \
        if (here) {                                                           \
            switch (turn()) {                                                 \
                case KILL: case TEAR: die();                                  \
                case FAIL_ONCE: errno = failure; return -1;                   \
            }                                                                 \
            if (notes >= 0) noted;                                            \
        }                                                                     \
        return real arguments;                                                \
    }

WITHOUT_BYTES(fsync, (int fd), (fd), watched(fd), note_fd('s', fd, 0, 0, 0))
WITHOUT_BYTES(fdatasync, (int fd), (fd), watched(fd), note_fd('s', fd, 0, 0, 0))
WITHOUT_BYTES(ftruncate, (int fd, off_t n), (fd, n), watched(fd), note_fd('t', fd, 0, n, 0))
WITHOUT_BYTES(ftruncate64, (int fd, off64_t n), (fd, n), watched(fd), note_fd('t', fd, 0, n, 0))
WITHOUT_BYTES(unlink, (const char *path), (path), below(path), note('u', path, 0, 0, 0))
WITHOUT_BYTES(rename, (const char *from, const char *to), (from, to), below(to),
              note('r', to, 0, 0, 0))

#define WITH_BYTES(name, parameters, whole, half, offset)                     \
    ssize_t name parameters {                                                 \
        REAL(name);                                                           \
        if (watched(fd)) {                                                    \
            switch (turn()) {                                                 \
                case TEAR: if (real half < 0) die(); die();                   \
                case KILL: die();                                             \
                case FAIL_ONCE: errno = failure; return -1;                   \
            }                                                                 \
            note_fd('w', fd, bytes, n, offset);                               \
        }                                                                     \
        return real whole;                                                    \
    }

WITH_BYTES(write, (int fd, const void *bytes, size_t n), (fd, bytes, n), (fd, bytes, n / 2),
           lseek(fd, 0, SEEK_CUR))
WITH_BYTES(pwrite, (int fd, const void *bytes, size_t n, off_t at), (fd, bytes, n, at),
           (fd, bytes, n / 2, at), at)
WITH_BYTES(pwrite64, (int fd, const void *bytes, size_t n, off64_t at), (fd, bytes, n, at),
           (fd, bytes, n / 2, at), at)
