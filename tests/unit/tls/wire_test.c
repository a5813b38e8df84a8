/* SPDX-License-Identifier: MIT
 *
 * Bytes leave a wire in the order in which they were added, whatever the portions, and stay where
 * they are until then.
 */
#include "tls/wire.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STEPS = 20000, MOST = 3 * TLS_CHUNK_BYTES };

static char byte_number(size_t number)
{
    return (char)(number * 31 + number / 251);
}

static void add_some(struct tls_wire *wire, struct tls_chunks *chunks, size_t *added, size_t len)
{
    static char bytes[MOST];
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_number((*added)++);
    assert_true(tls_wire_add(wire, chunks, span_of(bytes, len)));
}

/* Sends `len` bytes, or all. */
static void send_some(struct tls_wire *wire, struct tls_chunks *chunks, size_t *sent, size_t len)
{
    struct span pieces[5];
    unsigned count = tls_wire_pieces(wire, pieces, 5);
    size_t lent = 0;
    for (unsigned i = 0; i < count; i++) {
        assert_true(pieces[i].len > 0);
        for (size_t at = 0; at < pieces[i].len; at++)
            if (pieces[i].at[at] != byte_number(*sent + lent + at))
                fail_msg("byte %zu differs", *sent + lent + at);
        lent += pieces[i].len;
    }
    len = len < lent ? len : lent;
    tls_wire_sent(wire, chunks, len);
    *sent += len;
}

static void bytes_leave_in_order_in_any_portions(void **state)
{
    (void)state;
    struct random_source source = random_start();
    struct tls_wire wire = { 0 };
    struct tls_chunks chunks = { 0 };
    size_t added = 0, sent = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        size_t most = random_u64(&source) % 4 == 0 ? MOST : 300;
        size_t len = random_u64(&source) % most;
        if (random_u64(&source) % 2 == 0 && added - sent < MOST)
            add_some(&wire, &chunks, &added, len);
        else
            send_some(&wire, &chunks, &sent, len);
        assert_int_equal(tls_wire_is_empty(&wire), added == sent);
    }
    while (!tls_wire_is_empty(&wire))
        send_some(&wire, &chunks, &sent, MOST);
    assert_int_equal(sent, added);
    tls_chunks_trim(&chunks, 0);
}

static void lent_bytes_stay_while_more_are_added(void **state)
{
    (void)state;
    struct tls_wire wire = { 0 };
    struct tls_chunks chunks = { 0 };
    size_t added = 0;
    add_some(&wire, &chunks, &added, 100);
    struct span piece;
    assert_int_equal(tls_wire_pieces(&wire, &piece, 1), 1);
    add_some(&wire, &chunks, &added, MOST);
    struct span again;
    assert_int_equal(tls_wire_pieces(&wire, &again, 1), 1);
    assert_ptr_equal(again.at, piece.at);
    assert_true(again.len > piece.len);
    tls_wire_drop(&wire, &chunks);
    assert_true(tls_wire_is_empty(&wire));
    tls_chunks_trim(&chunks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_leave_in_order_in_any_portions),
        cmocka_unit_test(lent_bytes_stay_while_more_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
