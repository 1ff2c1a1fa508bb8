# Completion of nessie for fish.  Load it now:  nessie completion fish | source
# or for good: put it into ~/.config/fish/completions/nessie.fish
# Written by `make docs`.

# Sets what is known of a command; fails for none.
function __nessie_command
    switch "$argv[1]"
@COMMANDS@
        case '*'
            return 1
    end
end

# The kind of an option's value, with ? behind it if the value may be left out; nothing for a flag.
function __nessie_value
    for one in $__nessie_values
        set -l parts (string split -m 1 : -- $one)
        test "$parts[1]" = "$argv[1]"; and echo $parts[2]; and return
    end
end

# The kind of the word at a position.
function __nessie_word
    if test $argv[1] -lt (count $__nessie_kinds)
        echo $__nessie_kinds[(math $argv[1] + 1)]
    else if test $__nessie_repeats = 1; and set -q __nessie_kinds[1]
        echo $__nessie_kinds[-1]
    else
        echo -
    end
end

function __nessie_complete
    set -l words (commandline -opc)
    set -l last (string unescape -- (commandline -ct))
    set -l path ''
    set -l expected ''
    set -l dashes 0
    set -l count 0
    set -l kind ''
    __nessie_command ''
    for word in $words[2..-1]
        if test -n "$expected"; and not begin; string match -q -- '*\?' $expected; and string match -q -- '-*' $word; end
            set expected ''
            continue
        end
        set expected ''
        if test $dashes = 1
            set count (math $count + 1)
        else if test "$word" = --
            set dashes 1
        else if string match -q -- '--*=*' $word
        else if string match -q -- '-?*' $word
            string match -q -- '--*' $word; or set word -(string sub -s -1 -- $word)
            set expected (__nessie_value $word)
        else if set -q __nessie_commands[1]; and test $count = 0
            set path (string trim -- "$path $word")
            if not __nessie_command $path
                set kind '?'
                break
            end
        else
            set count (math $count + 1)
        end
    end
    if test -n "$kind"
    else if test -n "$expected"; and not begin; string match -q -- '*\?' $expected; and string match -q -- '-*' "$last"; end
        set kind (string replace -r -- '\?$' '' $expected)
    else if test $dashes = 1
        set kind $__nessie_behind
        test "$kind" = -; and set kind (__nessie_word $count)
    else if string match -q -- '--*=*' "$last"
        set kind (string replace -r -- '\?$' '' (__nessie_value (string replace -r -- '=.*' '' $last)))
        test -n "$kind"; or set kind -
    else if string match -q -- '-*' "$last"
        for option in $__nessie_options
            set -l name (string split -m 1 : -- $option)[1]
            string match -q -- '--*' "$last"; and not string match -q -- '--*' $name; and continue
            contains -- $name $words; and not contains -- $name $__nessie_repeatable; and continue
            string replace : \t -- $option
        end
        return
    else if set -q __nessie_commands[1]; and test -z "$path"
        set kind command
    else if set -q __nessie_commands[1]
        string replace : \t -- $__nessie_commands
        return
    else
        set kind (__nessie_word $count)
        if contains -- "$path" branch tag; and string match -qr -- '^(-d|-D|--delete)$' $words
            set kind $path
        end
    end
    test "$kind" = -; and return
    set -l how --kind $kind
    test "$kind" = '?'; and set how
    command $words[1] __complete $how -- $words[2..-1] "$last" 2>/dev/null
end

complete -c nessie -f -k -a '(__nessie_complete)'
