/* SPDX-License-Identifier: MIT
 *
 * Frames of HTTP/2: the server's end of a connection, beside that of libnghttp2. The same frames
 * get the same replies, and keep the same streams and windows, at any split.
 */
#include "frames_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)oracle_play(data, size);
    return 0;
}
