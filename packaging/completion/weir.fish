# SPDX-License-Identifier: MIT
#
# Completion for fish. Commands, options and their values come from `weir help`, so the two always
# agree.

function __weir_commands
    weir help 2>/dev/null | sed -n 's/^  weir \([a-z]*\) [^ ]* *\(.*\)/\1\t\2/p'
end

function __weir_help
    set -l command (commandline -opc)[2]
    if test -z "$command"; or string match -q -- '-*' $command; or test -d "$command"
        set command serve
    end
    weir help $command 2>/dev/null
end

function __weir_options
    __weir_help | sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p'
end

function __weir_values
    set -l option $argv[1]
    if test "$option" = --model
        weir models 2>/dev/null | sed -n '/^$/q; s/ .*//p'
        echo auto
    else if string match -qr -- '^--[a-z0-9-]+$' $option
        __weir_help | sed -n "s/^  \(-., \)\{0,1\}$option \([^ ]*\).*/\2/p" | tr '|' '\n' |
            sed -n '/^[a-z0-9.]*$/p'
    end
end

function __weir_joined
    set -l option (string split -m 1 = -- (commandline -ct))[1]
    __weir_values $option | sed "s/^/$option=/"
end

complete -c weir -n __fish_use_subcommand -a '(__weir_commands)'
complete -c weir -n '__fish_seen_subcommand_from help' -f -a '(__weir_commands)'
complete -c weir -n 'string match -q -- "-*" (commandline -ct)' -a '(__weir_options)'
complete -c weir -n 'string match -q -- "--*=*" (commandline -ct)' -a '(__weir_joined)'
complete -c weir -n 'not string match -q -- "-*" (commandline -ct)' \
    -a '(__weir_values (commandline -opc)[-1])'
