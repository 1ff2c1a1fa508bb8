# Completion of nessie for bash 3.2 and later.  Load it now:  source <(nessie completion bash)
# or for good: put it into ~/.local/share/bash-completion/completions/nessie

_nessie() {
    local reply
    COMPREPLY=()
    while IFS= read -r reply; do
        COMPREPLY+=("$reply")
    done < <("${1/#\~/$HOME}" __complete --bash "$COMP_WORDBREAKS" "${COMP_TYPE:-9}" "${COLUMNS:-80}" -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}

complete -o nospace -o nosort -F _nessie nessie 2>/dev/null || complete -o nospace -F _nessie nessie
