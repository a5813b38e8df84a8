#compdef weir
# SPDX-License-Identifier: MIT
#
# Completion for zsh. The commands and the options come from `weir help`, so the two always agree.

local command=$words[2]
local -a found
if [[ $words[CURRENT-1] == --model ]]; then
    found=(${(f)"$(weir models 2>/dev/null | sed -n 's/^[* ]*\([a-z]\{2,\}\) .*/\1/p')"})
    compadd -a found
elif [[ $PREFIX == -* ]]; then
    [[ $command == -* || -d $command ]] && command=serve
    found=(${(f)"$(weir help $command 2>/dev/null |
        sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p')"})
    compadd -a found
else
    if ((CURRENT == 2)); then
        found=(${(f)"$(weir help 2>/dev/null | sed -n 's/^  weir \([a-z]*\) .*/\1/p')"})
        compadd -a found
    fi
    _files
fi
