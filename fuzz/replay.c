/* SPDX-License-Identifier: MIT
 *
 * A main for fuzz targets without a fuzzer. It runs every file that is named, and every file of
 * the folders that are named, once. So any compiler runs the saved inputs again. It mutates
 * nothing.
 */
#include "base/check.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *in = fopen(path, "re");
    struct stat info;
    if (!in || fstat(fileno(in), &info) != 0) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size ? size : 1); /* exact, so that ASan detects a read past it */
    CHECK(data);
    int result = fread(data, 1, size, in) == size ? 0 : 1;
    (void)fclose(in);
    if (result == 0)
        (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return result;
}

static int replay_folder(const char *path, unsigned *count)
{
    struct dirent **names = NULL;
    int found = scandir(path, &names, NULL, alphasort);
    int result = 0;
    for (int i = 0; i < found; i++) {
        char file[4096];
        (void)snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.') {
            result |= replay_file(file);
            ++*count;
        }
        free(names[i]);
    }
    free(names);
    return result;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    int result = LLVMFuzzerTestOneInput((const uint8_t *)"", 0) == 0 ? 0 : 1;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            result |= replay_folder(argv[i], &count);
        } else {
            result |= replay_file(argv[i]);
            count++;
        }
    }
    (void)printf("%u inputs replayed\n", count);
    return result;
}
