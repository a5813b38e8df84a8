/* SPDX-License-Identifier: MIT */
#include "site/pages.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { READ_BYTES = 32 * 1024 }; /* in one call, on the stack */

static bool is_byte_ready(int fd, uint64_t at)
{
    char byte;
    return os_file_read_cached(fd, &byte, sizeof(byte), at) != -EINPROGRESS ||
           os_file_medium(fd) == OS_FILE_MEMORY;
}

bool site_pages_in_memory(int fd, uint64_t at, uint64_t end)
{
    const uint64_t step = SITE_PAGES_PROBE_BYTES;
    for (uint64_t next = at; next < end; next = (next / step + 1) * step)
        if (!is_byte_ready(fd, next))
            return false;
    return end <= at + 1 || is_byte_ready(fd, end - 1);
}

/* The first call requests all of it from the disk, so that the reads behind it wait once. */
void site_pages_read(int fd, uint64_t at, uint64_t end)
{
    char bytes[READ_BYTES];
    struct stat attributes;
    int rc = 0;
    (void)!readahead(fd, (off_t)at, (size_t)(end - at));
    while (at < end && rc == 0) {
        const size_t part = end - at < sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
        rc = os_file_read_at(fd, bytes, part, at);
        at += part;
    }
    (void)!os_file_stat(fd, &attributes);
}

int site_pages_open(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void site_pages_close(int fd)
{
    os_file_close(fd);
}
