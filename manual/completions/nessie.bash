# Completion of nessie for bash 3.2 and later.  Load it now:  source <(nessie completion bash)
# or for good: put it into ~/.local/share/bash-completion/completions/nessie
# Written by `make docs`.

# Sets what is known of a command; fails for none.
_nessie_command() {
    case "$1" in
@COMMANDS@
        *) return 1 ;;
    esac
}

# Finds out what the last word is. Sets kind: "words" for the words in $offered, "?" for a line that
# only the program can read, or the kind of the word.
_nessie_read() {
    local word path='' expected='' dashes=0 count=0 option all
    local -a line
    read -r -a line <<< "$1"
    last=''
    [[ $1 == *[[:space:]] ]] || { last=${line[${#line[@]}-1]}; unset "line[${#line[@]}-1]"; }
    _nessie_command ''
    all=" ${line[*]} "
    for word in "${line[@]:1}"; do
        if [[ -n $expected && ! ( $expected == *\? && $word == -* ) ]]; then
            expected=''
            continue
        fi
        expected=''
        if (( dashes )); then
            count=$((count + 1))
        elif [[ $word == -- ]]; then
            dashes=1
        elif [[ $word == --*=* ]]; then
            :
        elif [[ $word == -?* ]]; then
            [[ $word == --* || ${#word} -eq 2 ]] || word=-${word:${#word}-1}
            case " $values " in *" $word:"*) expected=" $values"; expected=${expected##* $word:}; expected=${expected%% *} ;; esac
        elif [[ -n $commands && $count -eq 0 ]]; then
            path="$path${path:+ }$word"
            _nessie_command "$path" || { kind='?'; return; }
        else
            count=$((count + 1))
        fi
    done
    if [[ -n $expected && ! ( $expected == *\? && $last == -* ) ]]; then
        kind=${expected%\?}
    elif (( dashes )); then
        kind=$behind
        [[ $kind == - ]] && _nessie_word "$count"
    elif [[ $last == --*=* ]]; then
        option=${last%%=*}
        kind=-
        case " $values " in *" $option:"*) kind=" $values"; kind=${kind##* $option:}; kind=${kind%% *}; kind=${kind%\?} ;; esac
    elif [[ $last == -* ]]; then
        kind=words offered=''
        for option in $options; do
            [[ $last == --* && $option != --* ]] && continue
            [[ $all == *" $option "* && " $repeatable " != *" $option "* ]] || offered="$offered $option"
        done
    elif [[ -n $commands && -z $path ]]; then
        kind=command
    elif [[ -n $commands ]]; then
        kind=words offered=$commands
    else
        _nessie_word "$count"
        case "$path $all" in
            'branch '*' -d '* | 'branch '*' -D '* | 'branch '*' --delete '*) kind=branch ;;
            'tag '*' -d '* | 'tag '*' -D '* | 'tag '*' --delete '*) kind=tag ;;
        esac
    fi
}

# Sets the kind of the word at a position.
_nessie_word() {
    local -a all
    read -r -a all <<< "$kinds"
    kind=-
    if (( $1 < ${#all[@]} )); then
        kind=${all[$1]}
    elif (( repeats )) && (( ${#all[@]} )); then
        kind=${all[${#all[@]}-1]}
    fi
}

_nessie() {
    local line="${COMP_LINE:0:COMP_POINT}" last kind='' offered='' reply
    local commands options values repeatable kinds repeats behind
    local -a how
    COMPREPLY=()
    case "$line" in
        *[\"\'\\]*) kind='?' ;;
        *) _nessie_read "$line" ;;
    esac
    case "$kind" in
        -) return ;;
        words)
            for reply in $offered; do
                [[ $reply == "$last"* ]] && COMPREPLY+=("$reply ")
            done
            return ;;
        '?') ;;
        *) how=(--kind "$kind") ;;
    esac
    while IFS= read -r reply; do
        COMPREPLY+=("$reply")
    done < <("${1/#\~/$HOME}" __complete ${how[@]+"${how[@]}"} --bash "$COMP_WORDBREAKS" "${COMP_TYPE:-9}" "${COLUMNS:-80}" -- "$line" 2>/dev/null)
}

complete -o nospace -o nosort -F _nessie nessie 2>/dev/null || complete -o nospace -F _nessie nessie
