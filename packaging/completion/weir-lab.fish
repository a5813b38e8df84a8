# SPDX-License-Identifier: MIT
#
# Completion for fish. A start of Python takes too long for a key press, so the commands and their
# options are in a file. A test compares the file with the program.

function __weir_lab_words
    set -l list /usr/share/weir-lab/options
    set -l command (commandline -opc)[2]
    if test -z "$command"
        sed 's/:.*//' $list 2>/dev/null
        string split ' ' -- '--version --help'
    else
        sed -n "s/^$command: //p" $list 2>/dev/null | string split ' '
    end
end

complete -c weir-lab -n __fish_use_subcommand -f -a '(__weir_lab_words)'
complete -c weir-lab -n 'string match -q -- "-*" (commandline -ct)' -a '(__weir_lab_words)'
