/* SPDX-License-Identifier: MIT
 *
 * The error codes of HTTP/2, as RST_STREAM and GOAWAY carry them (RFC 9113 section 7). An
 * unknown code has no special meaning, so a code that arrives is kept as a plain number.
 */
#pragma once

enum http2_error {
    HTTP2_NO_ERROR = 0x0,
    HTTP2_PROTOCOL_ERROR = 0x1,
    HTTP2_INTERNAL_ERROR = 0x2,
    HTTP2_FLOW_CONTROL_ERROR = 0x3,
    HTTP2_SETTINGS_TIMEOUT = 0x4,
    HTTP2_STREAM_CLOSED = 0x5,
    HTTP2_FRAME_SIZE_ERROR = 0x6,
    HTTP2_REFUSED_STREAM = 0x7,
    HTTP2_CANCEL = 0x8,
    HTTP2_COMPRESSION_ERROR = 0x9,
    HTTP2_CONNECT_ERROR = 0xa,
    HTTP2_ENHANCE_YOUR_CALM = 0xb,
    HTTP2_INADEQUATE_SECURITY = 0xc,
    HTTP2_HTTP_1_1_REQUIRED = 0xd,
};
