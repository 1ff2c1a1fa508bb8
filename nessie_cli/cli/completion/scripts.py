"""The scripts that shells load. They only pass the line on; what is completed is decided by the program, so they stay as they are for years.

`completions/` holds them as files for those who package nessie.
"""

from __future__ import annotations

FILE_NAMES = {"bash": "nessie.bash", "zsh": "_nessie", "fish": "nessie.fish"}
"""What each shell, or its packages, want the file to be called."""

_BASH = r"""# Completion of nessie for bash 3.2 and later.  Load it now:  source <(nessie completion bash)
# or for good: put it into ~/.local/share/bash-completion/completions/nessie

_nessie() {
    local reply
    COMPREPLY=()
    while IFS= read -r reply; do
        COMPREPLY+=("$reply")
    done < <("${1/#\~/$HOME}" __complete --bash "$COMP_WORDBREAKS" "${COMP_TYPE:-9}" "${COLUMNS:-80}" -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}

complete -o nospace -o nosort -F _nessie nessie 2>/dev/null || complete -o nospace -F _nessie nessie
"""

_ZSH = r"""#compdef nessie
# Completion of nessie for zsh.  Load it now:  source <(nessie completion zsh)
# or for good: put it as _nessie into a folder of $fpath.

_nessie() {
    local line text said width=0
    local -a lines whole whole_said open open_said shown
    lines=("${(@f)$("${(@Q)words[1]}" __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in $lines; do
        text=${line%%$'\t'*}
        (( ${#text} > width )) && width=${#text}
    done
    for line in $lines; do
        text=${line%%$'\t'*}
        said=$text
        [[ $line == *$'\t'* ]] && said="${(r:width:)text}  -- ${line#*$'\t'}"
        if [[ $text == *[./=] ]]; then
            open+=("$text") open_said+=("$said")
        else
            whole+=("$text") whole_said+=("$said")
        fi
    done
    local -a describe
    [[ "$whole_said$open_said" == *'  -- '* ]] && describe=(-l)
    local result=1
    (( $#open )) && compadd $describe -V nessie -S '' -d open_said -a open && result=0
    (( $#whole )) && compadd $describe -V nessie -d whole_said -a whole && result=0
    return result
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _nessie "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _nessie nessie
fi
"""

_FISH = r"""# Completion of nessie for fish.  Load it now:  nessie completion fish | source
# or for good: put it into ~/.config/fish/completions/nessie.fish

function __nessie_complete
    set -l words (commandline -opc)
    set -l last (string unescape -- (commandline -ct))
    command $words[1] __complete -- $words[2..-1] "$last" 2>/dev/null
end

complete -c nessie -f -k -a '(__nessie_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
