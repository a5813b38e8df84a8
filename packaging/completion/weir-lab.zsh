#compdef weir-lab
# SPDX-License-Identifier: MIT
#
# Completion for zsh. A start of Python takes too long for a key press, so the commands and their
# options are in a file. A test compares the file with the program.

local list=/usr/share/weir-lab/options
local -a found
if ((CURRENT == 2)); then
    found=(${(f)"$(sed 's/:.*//' $list 2>/dev/null)"} --version --help)
    compadd -a found
elif [[ $PREFIX == -* ]]; then
    found=(${=${"$(sed -n "s/^$words[2]: //p" $list 2>/dev/null)"}})
    compadd -a found
else
    _files
fi
