/* SPDX-License-Identifier: MIT */
#include "config/path.h"

#include <limits.h>
#include <stdlib.h>

/* The length of the path up to and with its last `..`; 0: it has none. */
static size_t length_with_parents(const char *path)
{
    size_t found = 0, start = 0;
    for (size_t i = 0; start <= i; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        if (i - start == 2 && path[start] == '.' && path[start + 1] == '.')
            found = i;
        if (path[i] == '\0')
            break;
        start = i + 1;
    }
    return found;
}

const char *config_path_join(struct config_arena *arena, struct span folder, struct span path)
{
    bool alone = path.at[0] == '/' || folder.len == 0;
    const char *joined = alone ? config_arena_copy(arena, path)
                               : config_arena_print(arena, "%.*s%.*s", (int)folder.len, folder.at,
                                                    (int)path.len, path.at);
    char resolved[PATH_MAX];
    size_t len = length_with_parents(joined);
    if (len == 0 || !realpath(config_arena_copy(arena, span_of(joined, len)), resolved))
        return joined;
    const char *rest = joined + len;
    if (strlen(resolved) + strlen(rest) >= CONFIG_PATH_MAX)
        return joined;
    bool top = resolved[1] == '\0' && *rest; /* "/" and "/etc" are one path together */
    return config_arena_print(arena, "%s%s", top ? "" : resolved, rest);
}
