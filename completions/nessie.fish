# Completion of nessie for fish.  Load it now:  nessie completion fish | source
# or for good: put it into ~/.config/fish/completions/nessie.fish

function __nessie_complete
    set -l words (commandline -opc)
    set -l last (string unescape -- (commandline -ct))
    command $words[1] __complete -- $words[2..-1] "$last" 2>/dev/null
end

complete -c nessie -f -k -a '(__nessie_complete)'
