/* SPDX-License-Identifier: MIT
 *
 * Addresses and networks as text.
 */
#include "peer/address.h"

#include "support/guard.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The C library is the judge. */
static void reads_what_the_c_library_reads(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "0",
        "1.2.3.4",
        "255.255.255.255",
        "256.1.1.1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.",
        ".1.2.3",
        "1..2.3",
        "01.2.3.4",
        "1.2.3.4 ",
        " 1.2.3.4",
        "1.2.3.+4",
        "0.0.0.0",
        "1.2.3.04",
        "1234.1.1.1",
        ":",
        "::",
        ":::",
        "::1",
        "1::",
        "1::2",
        "1::2::3",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "1:2:3:4::5:6:7:8",
        "12345::",
        "g::",
        "::ffff:192.0.2.1",
        "::192.0.2.1",
        "1:2:3:4:5:6:192.0.2.1",
        "1:2:3:4:5:6:7:192.0.2.1",
        "::1.2.3",
        "::1.2.3.4:5",
        "fe80::1%eth0",
        "2001:DB8::AbC",
        "1:",
        ":1",
        "1:2:",
        "::1:",
        "[::1]",
        "0000:0000::00001",
        "::0000",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct guard guard;
        struct peer_address address = { 0 };
        uint8_t v4[4], v6[16];
        const bool is_v4 = inet_pton(AF_INET, texts[i], v4) == 1;
        const bool is_v6 = inet_pton(AF_INET6, texts[i], v6) == 1;
        const bool read = peer_address_parse(guard_text(&guard, texts[i]), &address);
        guard_done(&guard);
        if (read != (is_v4 || is_v6))
            fail_msg("`%s` is %san address", texts[i], read ? "no " : "");
        if (!read)
            continue;
        assert_int_equal(address.family, is_v4 ? 4 : 6);
        assert_memory_equal(address.bytes, is_v4 ? v4 : v6, is_v4 ? 4 : 16);
    }
}

static void a_mapped_address_is_the_ipv4_address(void **state)
{
    (void)state;
    struct peer_address address;
    assert_true(peer_address_parse(SPAN("::ffff:192.0.2.1"), &address));
    peer_address_unmap(&address);
    assert_int_equal(address.family, 4);
    assert_memory_equal(address.bytes, ((uint8_t[]){ 192, 0, 2, 1, 0 }), 5);
    assert_true(peer_address_parse(SPAN("::192.0.2.1"), &address));
    peer_address_unmap(&address);
    assert_int_equal(address.family, 6);
}

static void reads_networks(void **state)
{
    (void)state;
    struct peer_network network;
    static const char *const good[] = { "192.0.2.1", "0.0.0.0/0", "::/0", "::1", "2001:db8::/128" };
    static const char *const bad[] = { "",    "/8",       "192.0.2.1/33", "::/129",
                                       "a/8", "1.2.3.4/", "1.2.3/8" };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(peer_network_parse(span_text(good[i]), &network));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(peer_network_parse(span_text(bad[i]), &network));
}

static void a_network_has_the_addresses_that_begin_with_its_bits(void **state)
{
    (void)state;
    struct peer_network each[3];
    assert_true(peer_network_parse(SPAN("192.0.2.16/28"), &each[0]));
    assert_true(peer_network_parse(SPAN("2001:db8::/33"), &each[1]));
    assert_true(peer_network_parse(SPAN("198.51.100.7"), &each[2]));
    struct peer_networks networks = { each, 3, false };
    static const struct {
        const char *text;
        bool inside;
    } cases[] = {
        { "192.0.2.16", true },     { "192.0.2.31", true },       { "192.0.2.32", false },
        { "192.0.2.15", false },    { "198.51.100.7", true },     { "198.51.100.6", false },
        { "2001:db8:7f::1", true }, { "2001:db8:8000::", false }, { "::", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer_address address;
        assert_true(peer_address_parse(span_text(cases[i].text), &address));
        if (peer_networks_have(&networks, address.family, address.bytes) != cases[i].inside)
            fail_msg("%s", cases[i].text);
    }
    const uint8_t none[PEER_ADDRESS_BYTES] = { 0 };
    assert_false(peer_networks_have(&networks, 0, none));
    networks.local = true;
    assert_true(peer_networks_have(&networks, 0, none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_c_library_reads),
        cmocka_unit_test(a_mapped_address_is_the_ipv4_address),
        cmocka_unit_test(reads_networks),
        cmocka_unit_test(a_network_has_the_addresses_that_begin_with_its_bits),
    };
    return cmocka_run_group_tests_name("peer/address", tests, NULL, NULL);
}
