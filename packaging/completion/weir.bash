# SPDX-License-Identifier: MIT
#
# Completion for bash. The commands and the options come from `weir help`, so the two always agree.

_weir()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]}
    local -a words=()
    COMPREPLY=()
    if [[ $previous == --model ]]; then
        mapfile -t words < <(weir models 2>/dev/null | sed -n 's/^[* ]*\([a-z]\{2,\}\) .*/\1/p')
    elif [[ $current == -* ]]; then
        [[ $command == -* || -d $command ]] && command=serve
        mapfile -t words < <(weir help "$command" 2>/dev/null |
            sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p')
    elif ((COMP_CWORD == 1)); then
        mapfile -t words < <(weir help 2>/dev/null | sed -n 's/^  weir \([a-z]*\) .*/\1/p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$current")
    ((${#COMPREPLY[@]} > 0)) || compopt -o default
}
complete -F _weir weir
