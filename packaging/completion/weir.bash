# SPDX-License-Identifier: MIT
#
# Completion for bash. Commands, options and their values come from `weir help`, so the two always
# agree.

_weir()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]}
    local -a words=()
    COMPREPLY=()
    [[ $command == -* || -d $command ]] && command=serve
    # bash takes --model=percore for three words.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $previous == --model ]]; then
        mapfile -t words < <(weir models 2>/dev/null | sed -n '/^$/q; s/ .*//p'
            echo auto)
    elif [[ $current == -* ]]; then
        mapfile -t words < <(weir help "$command" 2>/dev/null |
            sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p')
    elif ((COMP_CWORD == 1)) || [[ $previous == help ]]; then
        mapfile -t words < <(weir help 2>/dev/null | sed -n 's/^  weir \([a-z]*\) .*/\1/p')
    elif [[ $previous =~ ^--[a-z0-9-]+$ ]]; then
        mapfile -t words < <(weir help "$command" 2>/dev/null |
            sed -n "s/^  \(-., \)\{0,1\}$previous \([^ ]*\).*/\2/p" |
            tr '|' '\n' | sed -n '/^[a-z0-9.]*$/p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$current")
    ((${#COMPREPLY[@]} > 0)) || compopt -o default
}
complete -F _weir weir
