# SPDX-License-Identifier: MIT
#
# The startup file of an interactive zsh that a test types a line and a tabulator into. `FUNCTIONS`
# is the folder of the completion functions. An own `compadd` sees each word that a function offers
# and writes it to the file `OFFERED`. The shell says when the line can be typed, because what is
# typed before may be lost to its start, and when all words are written.
fpath=($FUNCTIONS $fpath)
autoload -Uz compinit
compinit -D -u
bindkey '^I' complete-word
compadd() {
    typeset -a offered
    builtin compadd -A offered "$@"
    print -l -- $offered >>$OFFERED
    builtin compadd "$@"
}
say_completed() { print -n 'the line is completed' >$TTY }
comppostfuncs=(say_completed)
zle-line-init() { print -n 'the editor reads' >$TTY }
zle -N zle-line-init
