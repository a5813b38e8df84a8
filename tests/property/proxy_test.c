/* SPDX-License-Identifier: MIT
 *
 * Random addresses and PROXY headers. Headers are drawn as data and then spelled, by the C library
 * where it can. What was drawn must be read.
 */
#include "peer/proxy.h"

#include "support/guard.h"
#include "support/random.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROUNDS = 20000, BYTES_MAX = PEER_PROXY_MAX + 64 };

static struct random_source rng;

static void draw_address(uint8_t family, uint8_t bytes[PEER_ADDRESS_BYTES])
{
    for (unsigned i = 0; i < PEER_ADDRESS_BYTES; i++)
        bytes[i] = family == 4 && i >= 4    ? 0
                   : random_one_in(&rng, 2) ? 0
                                            : (uint8_t)random_u64(&rng);
}

static void assert_client(const struct peer_proxy *header, uint8_t family, const uint8_t *bytes)
{
    struct peer_address want = { .family = family };
    memcpy(want.bytes, bytes, sizeof(want.bytes));
    peer_address_unmap(&want);
    assert_int_equal(header->client.family, want.family);
    assert_memory_equal(header->client.bytes, want.bytes, want.family == 6 ? 16 : 4);
}

/* One byte changed makes another header, or none, and never a crash. */
static void damage(char *bytes, size_t len)
{
    struct guard guard;
    struct peer_proxy header;
    bytes[random_below(&rng, len)] = (char)random_u64(&rng);
    const struct span damaged = guard_copy(&guard, span_of(bytes, len));
    if (peer_proxy_parse(damaged, &header) == PEER_PROXY_DONE)
        assert_in_range(header.len, 1, len);
    guard_done(&guard);
}

static void assert_header(char *bytes, size_t len, size_t header_len, uint8_t family,
                          const uint8_t *client)
{
    struct guard guard;
    struct peer_proxy header;
    const struct span whole = guard_copy(&guard, span_of(bytes, len));
    assert_int_equal(peer_proxy_parse(whole, &header), PEER_PROXY_DONE);
    assert_int_equal(header.len, header_len);
    assert_client(&header, family, client);
    guard_done(&guard);
    const struct span part = guard_copy(&guard, span_of(bytes, random_below(&rng, header_len)));
    assert_int_equal(peer_proxy_parse(part, &header), PEER_PROXY_MORE);
    guard_done(&guard);
    damage(bytes, len);
}

static void every_line_that_is_spelled_is_read(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint8_t family = random_one_in(&rng, 2) ? 4 : 6;
        const int system = family == 4 ? AF_INET : AF_INET6;
        uint8_t client[PEER_ADDRESS_BYTES], server[PEER_ADDRESS_BYTES];
        char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN], line[BYTES_MAX];
        draw_address(family, client);
        draw_address(family, server);
        assert_non_null(inet_ntop(system, client, from, sizeof(from)));
        assert_non_null(inet_ntop(system, server, to, sizeof(to)));
        const int len = snprintf(line, sizeof(line), "PROXY TCP%d %s %s %u %u\r\n", family, from,
                                 to, (unsigned)random_below(&rng, 65536),
                                 (unsigned)random_below(&rng, 65536));
        assert_in_range(len, 1, PEER_PROXY_LINE_MAX);
        assert_header(line, (size_t)len, (size_t)len, family, client);
    }
}

static void every_header_in_bytes_is_read(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        const uint8_t family = random_one_in(&rng, 2) ? 4 : 6;
        const size_t address_len = family == 4 ? 4 : 16, block = 2 * address_len + 4;
        const size_t values = random_below(&rng, PEER_PROXY_MAX - 16 - block + 1);
        const size_t rest = block + values, behind = random_below(&rng, 40);
        uint8_t client[PEER_ADDRESS_BYTES];
        static char bytes[BYTES_MAX];
        draw_address(family, client);
        memcpy(bytes, "\r\n\r\n\0\r\nQUIT\n\x21", 13);
        bytes[13] = family == 4 ? 0x11 : 0x21;
        bytes[14] = (char)(rest >> 8);
        bytes[15] = (char)(rest & 0xff);
        for (size_t k = 16; k < 16 + rest + behind; k++)
            bytes[k] = (char)random_u64(&rng);
        memcpy(bytes + 16, client, address_len);
        assert_header(bytes, 16 + rest + behind, 16 + rest, family, client);
    }
}

static void every_address_is_read_as_the_c_library_reads_it(void **state)
{
    (void)state;
    static const char letters[] = "0123456789abcdefF:::::....1";
    unsigned addresses = 0;
    for (unsigned i = 0; i < 20 * ROUNDS; i++) {
        char text[24];
        const size_t len = random_below(&rng, random_one_in(&rng, 3) ? 8 : sizeof(text) - 1);
        for (size_t k = 0; k < len; k++)
            text[k] = letters[random_below(&rng, sizeof(letters) - 1)];
        text[len] = '\0';
        uint8_t v4[4], v6[16];
        struct peer_address address;
        const bool is_v4 = inet_pton(AF_INET, text, v4) == 1;
        const bool is_v6 = inet_pton(AF_INET6, text, v6) == 1;
        if (peer_address_parse(span_of(text, len), &address) != (is_v4 || is_v6))
            fail_msg("`%s`", text);
        if (!is_v4 && !is_v6)
            continue;
        addresses++;
        assert_memory_equal(address.bytes, is_v4 ? v4 : v6, is_v4 ? 4 : 16);
    }
    assert_true(addresses > 0);
}

int main(void)
{
    rng = random_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_that_is_spelled_is_read),
        cmocka_unit_test(every_header_in_bytes_is_read),
        cmocka_unit_test(every_address_is_read_as_the_c_library_reads_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
