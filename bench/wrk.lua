-- SPDX-License-Identifier: MIT
--
-- Sends DEPTH requests at once (wrk ... -- DEPTH) and prints wrk's counts as a line of JSON, for
-- which wrk has no options. With depth 1 wrk's own constant request is used, which is cheaper.

function init(args)
    local depth = tonumber(args[1] or "1")
    if depth > 1 then
        local batch = string.rep(wrk.format(), depth)
        request = function()
            return batch
        end
    end
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        '\nBENCH {"requests": %d, "bytes": %.0f, "duration_us": %d, "connect_errors": %d,'
            .. ' "read_errors": %d, "write_errors": %d, "timeouts": %d, "status_errors": %d,'
            .. ' "mean_us": %d, "p50_us": %d, "p99_us": %d}\n',
        summary.requests, summary.bytes, summary.duration, errors.connect,
        errors.read, errors.write, errors.timeout, errors.status,
        math.floor(latency.mean + 0.5), latency:percentile(50), latency:percentile(99)))
end
