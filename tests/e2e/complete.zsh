# SPDX-License-Identifier: MIT
#
# Types a line and a tabulator into an interactive zsh, and prints the words that it offers.
#
#   zsh -f complete.zsh FOLDER LINE
#
# FOLDER has the completion functions. An own `compadd` sees each word that a function offers.
# The line is typed once the line editor reads: what is typed before may be lost to the start.
zmodload zsh/zpty || exit 1
setup=$(mktemp -d)
cat >$setup/setup <<END
fpath=(${(q)1} \$fpath)
autoload -Uz compinit
compinit -D -u
bindkey '^I' complete-word
compadd() {
    typeset -a offered
    builtin compadd -A offered "\$@"
    print -l -- \$offered >>$setup/offered
    builtin compadd "\$@"
}
comppostfuncs=(exit)
zle-line-init() { print -n 'the editor reads' }
zle -N zle-line-init
END
zpty shell zsh -f -i
zpty -w shell "source $setup/setup"
zpty -r shell ignored '*the editor reads*'
zpty -n -w shell "$2"$'\t'
while zpty -r shell ignored; do :; done
sort -u $setup/offered
rm -r $setup
