/* SPDX-License-Identifier: MIT */
#include "config/hint.h"

static const struct foreign {
    const char *theirs, *ours;
} foreign_settings[] = {
    /* nginx and Apache */
    { "server_name", "host" },
    { "ServerName", "host" },
    { "ServerAlias", "host" },
    { "DocumentRoot", "root" },
    { "DirectoryIndex", "index" },
    { "autoindex", "listing" },
    { "try_files", "spa" },
    { "error_page", "error-pages" },
    { "ErrorDocument", "error-pages" },
    { "add_header", "header" },
    { "gzip_static", "precompressed" },
    { "gzip", "compress" },
    { "brotli", "compress" },
    { "ssl_certificate", "tls-certificate" },
    { "SSLCertificateFile", "tls-certificate" },
    { "ssl_certificate_key", "tls-key" },
    { "SSLCertificateKeyFile", "tls-key" },
    { "ssl_protocols", "tls-min" },
    { "worker_processes", "workers" },
    { "worker_connections", "connections" },
    { "access_log", "access-log" },
    { "CustomLog", "access-log" },
    { "error_log", "error-log" },
    { "ErrorLog", "error-log" },
    { "log_format", "log-format" },
    { "LogFormat", "log-format" },
    { "pid", "pid-file" },
    { "server_tokens", "server-header" },
    { "keepalive_timeout", "idle-timeout" },
    { "client_header_timeout", "header-timeout" },
    { "client_body_timeout", "body-timeout" },
    { "keepalive_requests", "connection-requests" },
    { "limit_conn", "address-connections" },
    { "limit_req", "address-request-rate" },
    { "auth_basic", "auth-realm" },
    { "auth_basic_user_file", "auth" },
    { "send_timeout", "send-timeout" },
    { "set_real_ip_from", "forwarded-from" },
    { "real_ip_header", "forwarded-field" },
    { "limit_req_zone", "address-request-rate" },
    { "limit_conn_zone", "address-connections" },
    { "stub_status", "stats-listen" },
    { "FallbackResource", "spa" },
    { "Header", "header" },
    { "Redirect", "redirect" },
    { "AuthName", "auth-realm" },
    { "AuthUserFile", "auth" },
    { "RemoteIPHeader", "forwarded-field" },
    { "RemoteIPTrustedProxy", "forwarded-from" },
    { "RemoteIPInternalProxy", "forwarded-from" },
    { "RemoteIPProxyProtocol", "proxy-protocol" },
    { "AddOutputFilterByType", "compress" },
    { "AddType", "types" },
    { "Protocols", "http2" },
    /* h2o */
    { "file.dir", "root" },
    { "file.index", "index" },
    { "file.dirlisting", "listing" },
    { "header.add", "header" },
    { "certificate-file", "tls-certificate" },
    { "key-file", "tls-key" },
    { "num-threads", "threads" },
    { "max-connections", "connections" },
    /* lighttpd */
    { "server.document-root", "root" },
    { "server.port", "listen" },
    { "server.bind", "listen" },
    { "server.name", "host" },
    { "server.username", "user" },
    { "server.pid-file", "pid-file" },
    { "server.errorlog", "error-log" },
    { "server.errorfile-prefix", "error-pages" },
    { "server.max-connections", "connections" },
    { "server.max-worker", "workers" },
    { "server.tag", "server-header" },
    { "accesslog.filename", "access-log" },
    { "accesslog.format", "log-format" },
    { "index-file.names", "index" },
    { "dir-listing.activate", "listing" },
    { "server.dir-listing", "listing" },
    { "ssl.pemfile", "tls-certificate" },
    { "ssl.privkey", "tls-key" },
    /* Caddy */
    { "encode", "compress" },
    { "tls", "tls-certificate" },
    { "redir", "redirect" },
    { "respond", "status" },
    { "basic_auth", "auth" },
    { "trusted_proxies", "forwarded-from" },
};

/* Words that no setting stands for, and what to write in their place. */
static const struct advice {
    const char *word, *sentence;
} other_words[] = {
    { "location",
      "the rules for a path stand under a line [path PATTERN], such as [path /images/**]" },
    { "expires", "write `cache-control = VALUE` under [path PATTERN]" },
    { "return", "write `redirect = STATUS TARGET` or `status = STATUS` under [path PATTERN]" },
    { "alias",
      "weir serves no folder outside of a root; make it the root of another [site], or mount it "
      "below the root (mount --bind); for a path below the root write `rewrite = TARGET` under "
      "[path PATTERN]" },
    { "include", "all settings stand in one file" },
    { "if", "the rules for a path stand under a line [path PATTERN], and have no conditions" },
    { "internal", "pages of `error-pages` need no such line; remove it" },
    { "RewriteEngine", "remove the line" },
    { "AuthType", "remove the line" },
    { "SSLEngine", "an address of `listen` that begins with https:// has TLS; remove the line" },
    { "LimitRequestBody", "weir reads at most 1 MiB of a body, and discards it; remove the line" },
    { "RewriteRule", "write `redirect = STATUS TARGET` or `rewrite = PATH` under [path PATTERN]" },
    { "RedirectMatch",
      "write `redirect = STATUS TARGET` or `status = STATUS` under [path PATTERN]" },
    { "Require",
      "write `allow = NETWORK` or `deny = NETWORK` under [path PATTERN], or `auth = FILE`" },
    { "Options", "write `listing = on` or `off`; links out of the root are never followed" },
    { "gzip_types", "weir compresses all types of text; remove the line" },
    { "ssl_ciphers", "write `tls-policy = intermediate` or `modern` under [server]" },
    { "limit_rate", "weir does not slow answers down; remove the line" },
    { "limit_req_status", "the status is 429; remove the line" },
    { "real_ip_recursive", "weir takes the last address that is no proxy's; remove the line" },
    { "charset", "text is sent as UTF-8; remove the line" },
    { "file_server", "weir always serves files; write `root = DIR` under [site NAME]" },
    { "server.modules", "nothing has to be loaded; remove the line" },
    { "proxy_pass", "weir serves files, and forwards no request" },
    { "fastcgi_pass", "weir serves files, and runs no program" },
    { "client_max_body_size",
      "weir reads at most 1 MiB of a body, and discards it; remove the line" },
    { "sendfile", "weir chooses the fastest way by itself; remove the line" },
    { "tcp_nopush", "weir chooses the fastest way by itself; remove the line" },
    { "tcp_nodelay", "weir chooses the fastest way by itself; remove the line" },
};

static bool has_advice(struct span word, struct config_reason *ret_reason)
{
    for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++) {
        const struct advice *a = &other_words[i];
        if (!span_equal_nocase(word, span_text(a->word)))
            continue;
        (void)config_problem_refuse(ret_reason, "there is no `%s` here; %s", a->word, a->sentence);
        return true;
    }
    return false;
}

static const char *section_of(const struct config_setting *setting)
{
    return setting->section == CONFIG_SERVER ? "[server]"
           : setting->section == CONFIG_SITE ? "[site NAME]"
                                             : "[path PATTERN]";
}

static bool is_foreign(struct span word, struct config_reason *ret_reason)
{
    for (size_t i = 0; i < sizeof(foreign_settings) / sizeof(foreign_settings[0]); i++) {
        const struct foreign *f = &foreign_settings[i];
        if (!span_equal_nocase(word, span_text(f->theirs)))
            continue;
        const struct config_setting *ours = config_setting_find_anywhere(span_text(f->ours));
        (void)config_problem_refuse(
            ret_reason, "`%s` is called `%s` here; write `%s = %s` under %s", f->theirs, f->ours,
            f->ours, config_setting_placeholder(ours), section_of(ours));
        return true;
    }
    return false;
}

bool config_hint_explain(struct span text, struct config_reason *ret_reason)
{
    struct span rest = text;
    struct span word = span_take_word(&rest);
    if (span_ends(word, SPAN(";")))
        word = span_first(word, word.len - 1);
    /* Some names of Apache differ from ours only in their case. */
    const struct config_setting *setting = config_setting_find_anywhere(word);
    if (!setting && is_foreign(word, ret_reason))
        return true;
    if (has_advice(word, ret_reason))
        return true;
    if (span_ends(text, SPAN("{")) || span_equal(text, SPAN("}"))) {
        (void)config_problem_refuse(ret_reason,
                                    "there are no braces; a line [server] or [site NAME] begins a "
                                    "section, which ends where the next one begins");
        return true;
    }
    if (span_starts(text, SPAN("<"))) {
        (void)config_problem_refuse(ret_reason,
                                    "a line [site NAME] or [path PATTERN] begins a section, which "
                                    "ends where the next one begins");
        return true;
    }
    if (!setting || word.len == text.len)
        return false;
    (void)config_problem_refuse(ret_reason,
                                "a value follows `=`, and no `;` ends it; write `%s = %s`",
                                setting->name, config_setting_placeholder(setting));
    return true;
}

/* Whether quotes, `;` and `#` can be a part of such a value. */
static bool is_free_text(const struct config_setting *setting)
{
    return setting->kind == CONFIG_HEADER || setting->kind == CONFIG_RULE ||
           setting->kind == CONFIG_FORMAT;
}

struct span config_hint_strip(const struct config_setting *setting, struct span value)
{
    if (is_free_text(setting))
        return value;
    if (span_ends(value, SPAN(";")))
        value = span_trim(span_first(value, value.len - 1));
    char first = value.len > 1 ? value.at[0] : 0;
    if ((first == '"' || first == '\'') && value.at[value.len - 1] == first)
        value = span_trim(span_of(value.at + 1, value.len - 2));
    return value;
}

bool config_hint_has_comment(const struct config_setting *setting, struct span value)
{
    for (size_t i = 1; i < value.len && !is_free_text(setting); i++)
        if (value.at[i] == '#' && (value.at[i - 1] == ' ' || value.at[i - 1] == '\t'))
            return true;
    return false;
}
