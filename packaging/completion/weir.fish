# SPDX-License-Identifier: MIT
#
# Completion for fish. The commands and the options come from `weir help`, so the two always agree.

function __weir_commands
    weir help 2>/dev/null | sed -n 's/^  weir \([a-z]*\) .*/\1/p'
end

function __weir_options
    set -l command (commandline -opc)[2]
    if test -z "$command"; or string match -q -- '-*' $command; or test -d "$command"
        set command serve
    end
    weir help $command 2>/dev/null | sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p'
end

complete -c weir -n __fish_use_subcommand -a '(__weir_commands)'
complete -c weir -n 'string match -q -- "-*" (commandline -ct)' -a '(__weir_options)'
