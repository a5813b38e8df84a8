/* SPDX-License-Identifier: MIT
 *
 * Every fault has its status and a sentence, and every refusal names its fault.
 */
#include "http/fault.h"

#include "http/body.h"
#include "http/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const enum http_fault faults[] = {
#define FAULT(name, word, status, limit, sentence) HTTP_FAULT_##name,
#include "http/fault.def"
#undef FAULT
};

static void every_fault_has_a_status_and_a_sentence(void **state)
{
    (void)state;
    assert_int_equal(http_fault_status(HTTP_FAULT_NONE), 0);
    assert_int_equal(http_fault_sentence(HTTP_FAULT_NONE).len, 0);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        int status = http_fault_status(faults[i]);
        struct span sentence = http_fault_sentence(faults[i]);
        assert_true(status >= 400);
        assert_true(http_status_line((enum http_status)status).len > 0);
        assert_true(sentence.len > 0 && sentence.at[sentence.len - 1] != '.');
        assert_int_equal(http_fault_limit(faults[i]) > 0, span_ends(sentence, SPAN("the limit")));
    }
}

/* The first fault that the parser, the body or the target reports. */
static enum http_fault fault_of(const char *head)
{
    struct http_request request = { 0 };
    struct http_target target = { 0 };
    struct http_body body;
    enum http_status status;
    char storage[HTTP_TARGET_MAX];
    enum http_parse parse = http_request_parse(&request, span_text(head), &status);
    assert_int_not_equal(parse, HTTP_PARSE_MORE);
    if (parse == HTTP_PARSE_FAILED) {
        assert_int_equal(http_fault_status((enum http_fault)request.fault), (int)status);
        return (enum http_fault)request.fault;
    }
    int refused = http_body_begin(&body, &request, head);
    assert_int_equal(http_fault_status((enum http_fault)body.fault), refused);
    if (refused != 0)
        return (enum http_fault)body.fault;
    refused = http_target_resolve(&target, &request, head, storage, sizeof(storage));
    assert_int_equal(http_fault_status((enum http_fault)target.fault), refused);
    return (enum http_fault)target.fault;
}

static void a_refusal_names_its_cause(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        enum http_fault fault;
    } cases[] = {
        { "GET / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_NONE },
        { "\r\n\r\n\r\n\r\n\r\n", HTTP_FAULT_LINES_BEFORE },
        { "\r\r", HTTP_FAULT_METHOD },
        { " / HTTP/1.1\r\n\r\n", HTTP_FAULT_METHOD },
        { "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", HTTP_FAULT_METHOD_LENGTH },
        { "GET \x01 HTTP/1.1\r\n\r\n", HTTP_FAULT_TARGET_BYTES },
        { "GET / HTTX", HTTP_FAULT_VERSION_FORM },
        { "GET / HTTP/2.0\r\n\r\n", HTTP_FAULT_VERSION },
        { "GET / HTTP/1.1\r\nA B: c\r\n\r\n", HTTP_FAULT_FIELD_NAME },
        { "GET / HTTP/1.1\r\nA: \x01\r\n\r\n", HTTP_FAULT_FIELD_VALUE },
        { "GET / HTTP/1.1\r\nA: b\r\n\rx", HTTP_FAULT_HEAD_END },
        { "GET / HTTP/1.1\r\n\r\n", HTTP_FAULT_HOST_MISSING },
        { "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", HTTP_FAULT_HOST_REPEATED },
        { "GET / HTTP/1.1\r\nHost:\r\n\r\n", HTTP_FAULT_HOST_FORM },
        { "GET x HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_TARGET_FORM },
        { "GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_TARGET_HOST },
        { "GET /# HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_FRAGMENT },
        { "GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_ESCAPE },
        { "GET /%7F HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_ENCODED_CONTROL },
        { "GET /.. HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_ABOVE_ROOT },
        { "GET /%2f HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_ENCODED_SLASH },
        { "GET /%2f/%zz HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_FAULT_ESCAPE },
        { "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
          HTTP_FAULT_BODY_TWICE },
        { "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_FAULT_CODING_IN_1_0 },
        { "GET / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", HTTP_FAULT_CODING_FORM },
        { "GET / HTTP/1.1\r\nTransfer-Encoding: br, chunked\r\n\r\n", HTTP_FAULT_CODING },
        { "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", HTTP_FAULT_LENGTH_FORM },
        { "GET / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", HTTP_FAULT_BODY_LENGTH },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(fault_of(cases[i].head), cases[i].fault);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_has_a_status_and_a_sentence),
        cmocka_unit_test(a_refusal_names_its_cause),
    };
    return cmocka_run_group_tests_name("http/fault", tests, NULL, NULL);
}
