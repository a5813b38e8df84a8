# SPDX-License-Identifier: MIT
#
# Types a line and a tabulator into an interactive zsh, and prints the words that it offers.
#
#   zsh -f complete.zsh FOLDER LINE
#
# FOLDER has the completion functions. An own `compadd` sees each word that a function offers.
# That zsh has a startup file, so nothing but the line is typed. The line is typed once the line
# editor reads: what is typed before may be lost to the start.
zmodload zsh/zpty || exit 1
setup=$(mktemp -d)
cat >$setup/.zshrc <<END
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
export ZDOTDIR=$setup
zpty shell zsh -d -i
zpty -r shell ignored '*the editor reads*'
zpty -n -w shell "$2"$'\t'
while zpty -r shell ignored; do :; done
sort -u $setup/offered
rm -r $setup
