# Completion of nessie for bash 3.2 and later.  Load it now:  source <(nessie completion bash)
# or for good: put it into ~/.local/share/bash-completion/completions/nessie
# Written by `make docs`.

# Sets what is known of a command; fails for none.
_nessie_command() {
    case "$1" in
        '')
            commands='init status switch login config content reset commit restore revert stash log show diff branch tag merge run resolve transplant cherry-pick blame reflog undo import serve ui token export gc store fsck audit doctor stats demo help completion version' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help --version'
            values='--store:store --profile:profile --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'init')
            commands='' options='--default-branch --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--default-branch:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='folder' repeats=0 behind='-' ;;
        'status')
            commands='' options='-s --short --porcelain -b --branch --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'switch')
            commands='' options='-c --create --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-c:- --create:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='reference' repeats=0 behind='-' ;;
        'login')
            commands='' options='--token-stdin --forget --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='store' repeats=0 behind='-' ;;
        'config')
            commands='list get set unset' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'config list')
            commands='' options='--user --workspace --repository --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'config get')
            commands='' options='--user --workspace --repository --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='setting' repeats=0 behind='-' ;;
        'config set')
            commands='' options='--user --workspace --repository --add --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='setting -' repeats=0 behind='-' ;;
        'config unset')
            commands='' options='--user --workspace --repository --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='setting' repeats=0 behind='-' ;;
        'content')
            commands='put delete rename replace expire unmodified show history list' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'content put')
            commands='' options='--type --metadata-location --snapshot-id --schema-id --spec-id --sort-order-id --version-id --sql-text --dialect --signature-id --checkpoint-location --last-checkpoint --property --from-metadata --content -m --message --author --expected-hash --id --new --existing --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--type:=iceberg-table,iceberg-view,namespace,delta-table,udf --metadata-location:file --snapshot-id:- --schema-id:- --spec-id:- --sort-order-id:- --version-id:- --sql-text:- --dialect:- --signature-id:- --checkpoint-location:file --last-checkpoint:file --property:- --from-metadata:file --content:file -m:- --message:- --author:- --expected-hash:hash --id:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--metadata-location --checkpoint-location --property -m --message --author -C' kinds='key' repeats=0 behind='-' ;;
        'content delete')
            commands='' options='-m --message --author --expected-hash --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-m:- --message:- --author:- --expected-hash:hash --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-m --message --author -C' kinds='key' repeats=1 behind='-' ;;
        'content rename')
            commands='' options='-m --message --author --expected-hash --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-m:- --message:- --author:- --expected-hash:hash --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-m --message --author -C' kinds='key key' repeats=0 behind='-' ;;
        'content replace')
            commands='' options='--type --metadata-location --snapshot-id --schema-id --spec-id --sort-order-id --version-id --sql-text --dialect --signature-id --checkpoint-location --last-checkpoint --property --from-metadata --content -m --message --author --expected-hash --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--type:=iceberg-table,iceberg-view,namespace,delta-table,udf --metadata-location:file --snapshot-id:- --schema-id:- --spec-id:- --sort-order-id:- --version-id:- --sql-text:- --dialect:- --signature-id:- --checkpoint-location:file --last-checkpoint:file --property:- --from-metadata:file --content:file -m:- --message:- --author:- --expected-hash:hash --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--metadata-location --checkpoint-location --property -m --message --author -C' kinds='key' repeats=0 behind='-' ;;
        'content expire')
            commands='' options='--older-than --keep-last -m --message --dry-run --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--older-than:- --keep-last:- -m:- --message:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-m --message -C' kinds='key' repeats=1 behind='-' ;;
        'content unmodified')
            commands='' options='-m --message --author --expected-hash --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-m:- --message:- --author:- --expected-hash:hash --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-m --message --author -C' kinds='key' repeats=1 behind='-' ;;
        'content show')
            commands='' options='--at --raw --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--at:revision --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='key revision' repeats=0 behind='-' ;;
        'content view')
            commands='' options='--at --raw --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--at:revision --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='key revision' repeats=0 behind='-' ;;
        'content history')
            commands='' options='--at -n --max-count --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--at:revision -n:- --max-count:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='key revision' repeats=0 behind='-' ;;
        'content list')
            commands='' options='--type -t --filter --tree --at -r --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--type:=iceberg-table,iceberg-view,namespace,delta-table,udf -t:=iceberg-table,iceberg-view,namespace,delta-table,udf --filter:- --at:revision -r:revision --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='key' repeats=0 behind='-' ;;
        'reset')
            commands='' options='--all --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='staged' repeats=1 behind='-' ;;
        'commit')
            commands='' options='-m --message -F --file --batch --author --signed-off-by --property --author-time --expected-hash --dry-run --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-m:- --message:- -F:file --file:file --batch:file --author:- --signed-off-by:- --property:- --author-time:- --expected-hash:hash --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-m --message --author --signed-off-by --property -C' kinds='' repeats=0 behind='-' ;;
        'restore')
            commands='' options='-m --message --author --at --source -s --recursive -r --allow-failed-run --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-m:- --message:- --author:- --at:revision --source:revision -s:revision --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-m --message --author -C' kinds='key' repeats=1 behind='-' ;;
        'revert')
            commands='' options='--ours --theirs --no-combine --engine --rows --whole-rows --key --rows-ours --rows-theirs --decisions --write-decisions -m --message --expected-hash -c --no-commit -n --dry-run --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--ours:key --theirs:key --engine:=local,spark --key:-? --rows-ours:key --rows-theirs:key --decisions:file --write-decisions:file -m:- --message:- --expected-hash:hash -c:hash --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--ours --theirs --key --rows-ours --rows-theirs -m --message -C' kinds='range' repeats=0 behind='-' ;;
        'stash')
            commands='push list show pop apply drop' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'stash push')
            commands='' options='-m --message --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-m:- --message:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='staged' repeats=1 behind='-' ;;
        'stash list')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'stash show')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='-' repeats=0 behind='-' ;;
        'stash pop')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='-' repeats=0 behind='-' ;;
        'stash apply')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='-' repeats=0 behind='-' ;;
        'stash drop')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='-' repeats=0 behind='-' ;;
        'log')
            commands='' options='-n --max-count --number --skip --all --since --after --until --before --author --committer --grep -i --ignore-case --filter --merges --no-merges --first-parent -x --extended --oneline --graph --stat --name-status -p --patch --deep --format --pretty --reverse --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-n:- --max-count:- --number:- --skip:- --since:- --after:- --until:- --before:- --author:- --committer:- --grep:- --filter:- --format:- --pretty:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--author --committer --grep -C' kinds='range' repeats=0 behind='key' ;;
        'show')
            commands='' options='--name-status --deep --rows --key --columns --where --limit --format -o --output --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--key:- --columns:- --where:- --limit:- --format:=table,markdown,csv,parquet -o:file --output:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='revision' repeats=0 behind='key' ;;
        'diff')
            commands='' options='--staged --cached --stat --name-status --name-only --deep --rows --key --columns --where --limit --format -o --output --exit-code --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--key:- --columns:- --where:- --limit:- --format:=table,markdown,csv,parquet -o:file --output:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='range revision' repeats=0 behind='key' ;;
        'branch')
            commands='' options='-l --list --contains --no-contains --merged --no-merged --points-at --filter --sort --show-current -x --extended -d --delete -m --move -f --force --allow-failed-run --if-exists --if-not-exists --expected-hash --yes -y --dry-run -c --copy --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--contains:revision --no-contains:revision --merged:revision? --no-merged:revision? --points-at:revision --filter:- --sort:=name,-name,time,-time,ahead,-ahead,behind,-behind --expected-hash:hash --store:store --profile:branch --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='branch revision' repeats=0 behind='-' ;;
        'tag')
            commands='' options='-l --list --contains --no-contains --merged --no-merged --points-at --filter --sort --show-current -x --extended -d --delete --move -f --force --allow-failed-run --if-exists --if-not-exists --expected-hash --yes -y --dry-run -m --message --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--contains:revision --no-contains:revision --merged:revision? --no-merged:revision? --points-at:revision --filter:- --sort:=name,-name,time,-time,ahead,-ahead,behind,-behind --expected-hash:hash -m:- --message:- --store:store --profile:tag --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='tag revision' repeats=0 behind='-' ;;
        'merge')
            commands='' options='--ours --theirs --no-combine --engine --rows --whole-rows --key --rows-ours --rows-theirs --decisions --write-decisions -m --message --resolve --expected-hash -c --allow-failed-run --behavior --dry-run --deep --into --onto -b --unrelated --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--ours:key --theirs:key --engine:=local,spark --key:-? --rows-ours:key --rows-theirs:key --decisions:file --write-decisions:file -m:- --message:- --resolve:key=file --expected-hash:hash -c:hash --behavior:=normal,force,drop --into:reference --onto:reference -b:reference --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--ours --theirs --key --rows-ours --rows-theirs -m --message --resolve -C' kinds='revision' repeats=0 behind='-' ;;
        'run')
            commands='' options='--into --from --check --check-sql --check-audit --engine --no-recheck --tag -m --message --no-merge --key --begin --join --run-checks --publish --resume --discard --list --show --print-env --dry-run --warehouse --allow-location --warehouses --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--into:branch --from:revision --check:file --check-sql:file --engine:=local,spark --tag:- -m:- --message:- --key:- --join:pipeline-run --run-checks:pipeline-run --publish:pipeline-run --resume:pipeline-run --discard:pipeline-run --show:pipeline-run --warehouse:file? --allow-location:file --warehouses:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--check --check-sql --warehouse --allow-location -C' kinds='' repeats=0 behind='file' ;;
        'resolve')
            commands='' options='--ours --theirs --no-combine --engine --rows --whole-rows --key --rows-ours --rows-theirs --decisions --write-decisions -m --message --resolve --expected-hash -c --allow-failed-run --current --proposed --into --onto -b --unrelated --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--ours:key --theirs:key --engine:=local,spark --key:-? --rows-ours:key --rows-theirs:key --decisions:file --write-decisions:file -m:- --message:- --resolve:key=file --expected-hash:hash -c:hash --current:key --proposed:key --into:reference --onto:reference -b:reference --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--ours --theirs --key --rows-ours --rows-theirs -m --message --resolve --current --proposed -C' kinds='=merge,transplant,revert range' repeats=1 behind='-' ;;
        'transplant')
            commands='' options='--ours --theirs --no-combine --engine --rows --whole-rows --key --rows-ours --rows-theirs --decisions --write-decisions -m --message --resolve --expected-hash -c --allow-failed-run --behavior --dry-run --deep --onto --into -b --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--ours:key --theirs:key --engine:=local,spark --key:-? --rows-ours:key --rows-theirs:key --decisions:file --write-decisions:file -m:- --message:- --resolve:key=file --expected-hash:hash -c:hash --behavior:=normal,force,drop --onto:reference --into:reference -b:reference --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--ours --theirs --key --rows-ours --rows-theirs -m --message --resolve -C' kinds='range' repeats=1 behind='-' ;;
        'cherry-pick')
            commands='' options='--ours --theirs --no-combine --engine --rows --whole-rows --key --rows-ours --rows-theirs --decisions --write-decisions -m --message --resolve --expected-hash -c --allow-failed-run --behavior --dry-run --deep --onto --into -b --no-verify --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--ours:key --theirs:key --engine:=local,spark --key:-? --rows-ours:key --rows-theirs:key --decisions:file --write-decisions:file -m:- --message:- --resolve:key=file --expected-hash:hash -c:hash --behavior:=normal,force,drop --onto:reference --into:reference -b:reference --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--ours --theirs --key --rows-ours --rows-theirs -m --message --resolve -C' kinds='range' repeats=1 behind='-' ;;
        'blame')
            commands='' options='--at --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--at:revision --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='key' repeats=0 behind='-' ;;
        'reflog')
            commands='' options='--all -n --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-n:- --store:store --profile:- --ref:moved --color:=auto,always,never -C:folder' repeatable='-C' kinds='moved' repeats=0 behind='-' ;;
        'undo')
            commands='' options='--to --yes -y --dry-run --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--to:move --store:store --profile:- --ref:moved --color:=auto,always,never -C:folder' repeatable='-C' kinds='moved' repeats=0 behind='-' ;;
        'import')
            commands='' options='--type --property --from --into --prefix --include --exclude --as -m --message --dry-run --skip-invalid --guess --update --pointers-only --adopt --list --write-warehouses --history --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--type:=rest,hive,glue,sql,dynamodb,nessie,folder --property:- --from:revision --into:branch --prefix:key --include:- --exclude:- --as:- -m:- --message:- --adopt:key --write-warehouses:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--property --include --exclude -m --message --adopt -C' kinds='folder -' repeats=1 behind='-' ;;
        'serve')
            commands='' options='--host --port --management-port --insecure --allowed-host --public-url --workers --tokens --jwt-issuer --jwt-audience --jwt-keys --jwt-roles --jwt-name --oidc-client --oidc-secret --rules --anonymous --open-metrics --tls-cert --tls-key --tls-client-ca --warehouse --allow-location --warehouses --access-log --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--host:- --port:- --management-port:- --allowed-host:- --public-url:store --workers:- --tokens:file --jwt-issuer:- --jwt-audience:- --jwt-keys:file --jwt-roles:- --jwt-name:- --oidc-client:- --oidc-secret:file --rules:file --tls-cert:file --tls-key:file --tls-client-ca:file --warehouse:file? --allow-location:file --warehouses:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--allowed-host --warehouse --allow-location -C' kinds='' repeats=0 behind='-' ;;
        'ui')
            commands='' options='--no-browser --port --warehouse --allow-location --warehouses --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--port:- --warehouse:file? --allow-location:file --warehouses:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--warehouse --allow-location -C' kinds='' repeats=0 behind='-' ;;
        'token')
            commands='new list revoke' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'token new')
            commands='' options='--file --roles --expires --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--file:file --roles:- --expires:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--roles -C' kinds='-' repeats=0 behind='-' ;;
        'token list')
            commands='' options='--file --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--file:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'token revoke')
            commands='' options='--file --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--file:file --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='-' repeats=0 behind='-' ;;
        'export')
            commands='' options='--to --prefix --prune --force --allow-gap --dry-run --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--to:- --prefix:key --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='revision key' repeats=1 behind='-' ;;
        'gc')
            commands='mark plan show approve apply list' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'gc mark')
            commands='' options='--runs --cutoff --default-cutoff --reference-time --snapshots --catalog --engine --resume --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--runs:folder --cutoff:- --default-cutoff:- --reference-time:- --snapshots:=listed,referenced --catalog:- --engine:=local,spark --resume:run --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--cutoff -C' kinds='' repeats=0 behind='-' ;;
        'gc plan')
            commands='' options='--runs --warehouse --grace --engine --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--runs:folder --warehouse:folder --grace:- --engine:=local,spark --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='--warehouse -C' kinds='run' repeats=0 behind='-' ;;
        'gc show')
            commands='' options='--runs --candidates --kept --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--runs:folder --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='run' repeats=0 behind='-' ;;
        'gc approve')
            commands='' options='--runs --by --digest --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--runs:folder --by:- --digest:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='run' repeats=0 behind='-' ;;
        'gc apply')
            commands='' options='--runs --dry-run --engine --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--runs:folder --engine:=local,spark --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='run' repeats=0 behind='-' ;;
        'gc list')
            commands='' options='--runs --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--runs:folder --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'store')
            commands='backup load maintain' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'store backup')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='file' repeats=0 behind='-' ;;
        'store load')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='file' repeats=0 behind='-' ;;
        'store maintain')
            commands='' options='--grace --dry-run --full --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--grace:- --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'fsck')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'audit')
            commands='' options='--prefix --engine --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--prefix:key --engine:=local,spark --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='revision' repeats=0 behind='-' ;;
        'doctor')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'stats')
            commands='' options='-n --most --sizes --by-branch --small --engine --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='-n:- --most:- --small:- --engine:=local,spark --store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='range' repeats=0 behind='-' ;;
        'demo')
            commands='lake' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
        'demo lake')
            commands='' options='--conflict --store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='folder' repeats=0 behind='-' ;;
        'help')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='page' repeats=1 behind='-' ;;
        'completion')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='=bash,zsh,fish' repeats=0 behind='-' ;;
        'version')
            commands='' options='--store --profile --ref --color -C --json --jsonl --no-pager -q --quiet -v --verbose --debug -h --help'
            values='--store:store --profile:- --ref:reference --color:=auto,always,never -C:folder' repeatable='-C' kinds='' repeats=0 behind='-' ;;
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
