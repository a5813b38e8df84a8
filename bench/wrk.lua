-- SPDX-License-Identifier: MIT
--
-- Sends DEPTH requests at once (wrk ... -- DEPTH), or requests for the paths of a file, in their
-- order and from number START on (wrk ... -- 1 FILE START). Prints wrk's counts as a line of JSON,
-- for which wrk has no options. With depth 1 wrk's own constant request is used, which is cheaper.

local function ask_for_each(file, start)
    local requests, at = {}, start
    for path in io.lines(file) do
        requests[#requests + 1] = wrk.format(nil, path)
    end
    request = function()
        at = at % #requests + 1
        return requests[at]
    end
end

function init(args)
    local depth = tonumber(args[1] or "1")
    if depth > 1 then
        local batch = string.rep(wrk.format(), depth)
        request = function()
            return batch
        end
    elseif args[2] then
        ask_for_each(args[2], tonumber(args[3] or "0"))
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
