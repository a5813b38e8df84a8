# SPDX-License-Identifier: MIT
#
# Completion for bash. A start of Python takes too long for a key press, so the commands and their
# options are in a file. A test compares the file with the program.

_weir_lab()
{
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    local list=/usr/share/weir-lab/options
    local words=
    COMPREPLY=()
    if ((COMP_CWORD == 1)) && [[ $current == -* ]]; then
        words='--version --help'
    elif [[ $current == -* ]]; then
        words=$(sed -n "s/^$command: //p" "$list" 2>/dev/null)
    elif ((COMP_CWORD == 1)); then
        words=$(sed 's/:.*//' "$list" 2>/dev/null)
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    ((${#COMPREPLY[@]} > 0)) || compopt -o default
}
complete -F _weir_lab weir-lab
