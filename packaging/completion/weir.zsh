#compdef weir
# SPDX-License-Identifier: MIT
#
# Completion for zsh. Commands, options and their values come from `weir help`, so the two always
# agree.

local command=$words[2] previous=$words[CURRENT-1]
local -a found
[[ $command == -* || -d $command ]] && command=serve
if [[ $PREFIX == --*=* ]]; then
    previous=${PREFIX%%=*}
    compset -P '*='
fi
if [[ $previous == --model ]]; then
    found=(${(f)"$(weir models 2>/dev/null | sed -n '/^$/q; s/ .*//p')"} auto)
elif [[ $PREFIX == -* ]]; then
    found=(${(f)"$(weir help $command 2>/dev/null |
        sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p')"})
elif ((CURRENT == 2)) || [[ $previous == help ]]; then
    found=(${(f)"$(weir help 2>/dev/null | sed -n 's/^  weir \([a-z]*\) .*/\1/p')"})
elif [[ $previous =~ '^--[a-z0-9-]+$' ]]; then
    found=(${(f)"$(weir help $command 2>/dev/null |
        sed -n "s/^  \(-., \)\{0,1\}$previous \([^ ]*\).*/\2/p" |
        tr '|' '\n' | sed -n '/^[a-z0-9.]*$/p')"})
fi
compadd -a found
(($#found && CURRENT > 2)) || _files
