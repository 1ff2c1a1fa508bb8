# Completion of nessie for fish.  Load it now:  nessie completion fish | source
# or for good: put it into ~/.config/fish/completions/nessie.fish
# Written by `make docs`.

# Sets what is known of a command; fails for none.
function __nessie_command
    switch "$argv[1]"
        case ''
            set -g __nessie_commands 'init:Create a workspace (.nessie/), and its store if it does not exist.' 'status:Show the current reference, the staged batch, and the conflicts that a commit would cause.' 'switch:Change the workspace\'s current reference.' 'login:Trust a server with credentials, and store a token for it.' 'config:List, read and change settings, profiles and aliases.' 'content:Show contents, and stage changes for the next commit.' 'reset:Remove operations from the staged batch.' 'commit:Commit the staged batch, or the operations of a file.' 'restore:Restore keys from an earlier revision, as staged changes.' 'revert:Commit the inverse of a commit.' 'stash:Set the staged batch aside, and stage it again later.' 'log:Show the history, newest commit first.' 'show:Show a commit\'s metadata and changes.' 'diff:Show the contents that differ between two revisions, field by field.' 'branch:List, create, delete, rename or assign branches.' 'tag:List, create, delete, rename or assign tags.' 'merge:Merge the changes of a branch into another, as one commit.' 'resolve:Resolve the conflicts of the batch, of a merge, transplant or revert, one by one.' 'transplant:Copy commits onto a branch, each as a new commit (cherry-pick).' 'cherry-pick:Same as transplant.' 'blame:Show the commit that last changed each key.' 'reflog:Show the operations on a reference, newest first.' 'undo:Undo your last operation on the store, or the last operation on a reference.' 'serve:Serve the store over Nessie\'s REST API and, with --warehouse, Iceberg REST.' 'token:Create, list and revoke access tokens for `nessie serve`.' 'gc:Find table files that no live commit needs (live: kept by a retention policy or the reflog), and delete them after approval.' 'store:Back up, load and maintain a store.' 'fsck:Verify every object, reference and link of the store.' 'audit:Check the files of every table and view at a revision.' 'doctor:Check the installation, and the store that a command would use.' 'stats:Count commits by author, by day and by key.' 'help:Show the manual page of a command or topic.' 'completion:Print the completion script of a shell.' 'version:Print the versions of nessie and Python, and the newest store format that nessie supports.'
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.' '--version:Print the versions of nessie and Python, and the newest store format that nessie supports, and end.'
            set -g __nessie_values '--store:store' '--profile:profile' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'init'
            set -g __nessie_commands 
            set -g __nessie_options '--default-branch:The default branch of a new store. An existing store keeps its own.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--default-branch:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'folder'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'status'
            set -g __nessie_commands 
            set -g __nessie_options '-s:Show one line per staged change: a letter, then C if the key conflicts, then the key.' '--short:Show one line per staged change: a letter, then C if the key conflicts, then the key.' '--porcelain:Show one line per staged change: a letter, then C if the key conflicts, then the key.' '-b:With --short: first show a line with the current reference.' '--branch:With --short: first show a line with the current reference.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'switch'
            set -g __nessie_commands 
            set -g __nessie_options '-c:Create this branch at START (default: HEAD), and switch to it.' '--create:Create this branch at START (default: HEAD), and switch to it.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-c:-' '--create:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'reference'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'login'
            set -g __nessie_commands 
            set -g __nessie_options '--token-stdin:Read the token from stdin.' '--forget:Undo an earlier login: forget the server, and delete its stored token.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'store'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'config'
            set -g __nessie_commands 'list:List the settings that have a value: name, value and scope.' 'get:Print the value of a setting.' 'set:Change a setting.' 'unset:Remove a setting.'
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'config list'
            set -g __nessie_commands 
            set -g __nessie_options '--user:List your own settings, which apply in every workspace.' '--workspace:List the settings of this workspace.' '--repository:List the repository\'s settings, which apply to every client.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'config get'
            set -g __nessie_commands 
            set -g __nessie_options '--user:Use the user settings (config.toml in the user\'s configuration folder), which apply in every workspace.' '--workspace:Use the settings of this workspace (.nessie/config.toml).' '--repository:Use the settings of the repository, which apply to every client.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'setting'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'config set'
            set -g __nessie_commands 
            set -g __nessie_options '--user:Use the user settings (config.toml in the user\'s configuration folder), which apply in every workspace.' '--workspace:Use the settings of this workspace (.nessie/config.toml).' '--repository:Use the settings of the repository, which apply to every client.' '--add:Append VALUE to the list instead of replacing the list. Only for safe-directories, trusted-endpoints and allow-http.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'setting' '-'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'config unset'
            set -g __nessie_commands 
            set -g __nessie_options '--user:Use the user settings (config.toml in the user\'s configuration folder), which apply in every workspace.' '--workspace:Use the settings of this workspace (.nessie/config.toml).' '--repository:Use the settings of the repository, which apply to every client.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'setting'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content'
            set -g __nessie_commands 'put:Stage the content of a key.' 'delete:Stage the deletion of keys.' 'rename:Stage a rename: move a content to another key.' 'replace:Stage a replacement: drop a key\'s content, and create a new one.' 'unmodified:Stage a check that keys are unmodified when the batch is committed.' 'show:Show a key\'s content, its cache key, and the last commit that wrote it.' 'history:Show the commits that changed the content of a key, newest first, with the changed fields.' 'list:List keys with content type and content id.'
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content put'
            set -g __nessie_commands 
            set -g __nessie_options '--type:iceberg-table, iceberg-view, namespace, delta-table or udf. Required for a new key without --from-metadata or --content.' '--metadata-location:The metadata file; repeat for the history of a delta-table.' '--snapshot-id:iceberg-table: the current snapshot.' '--schema-id:iceberg-table and iceberg-view: the current schema.' '--spec-id:iceberg-table: the default partition spec.' '--sort-order-id:iceberg-table: the default sort order.' '--version-id:iceberg-view and udf: the current version.' '--sql-text:iceberg-view and udf: the definition.' '--dialect:iceberg-view and udf: the SQL dialect.' '--signature-id:udf: the signature.' '--checkpoint-location:delta-table: a checkpoint; repeatable, oldest first.' '--last-checkpoint:delta-table: the last checkpoint.' '--property:namespace: a property; repeatable.' '--from-metadata:Read the content from an Iceberg metadata file, or from the newest one in a table\'s folder.' '--content:Read the content from a JSON file (-: stdin), as `content show --raw` prints it.' '--id:Fail unless the key has this content id. Not allowed for a new key.' '-m:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--message:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--author:With -m: an author of the commit; repeatable.' '--expected-hash:Use the contents at this commit as the expected contents, and replace any staged operations on the keys of the command. Some conflict messages print a command with this option that resolves the conflict.' '--new:Fail if the key exists.' '--existing:Fail if the key does not exist.' '--no-verify:With -m: skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--type:=iceberg-table,iceberg-view,namespace,delta-table,udf' '--metadata-location:file' '--snapshot-id:-' '--schema-id:-' '--spec-id:-' '--sort-order-id:-' '--version-id:-' '--sql-text:-' '--dialect:-' '--signature-id:-' '--checkpoint-location:file' '--last-checkpoint:file' '--property:-' '--from-metadata:file' '--content:file' '--id:-' '-m:-' '--message:-' '--author:-' '--expected-hash:hash' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--metadata-location' '--checkpoint-location' '--property' '-m' '--message' '--author' '-C'
            set -g __nessie_kinds 'key'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content delete'
            set -g __nessie_commands 
            set -g __nessie_options '-m:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--message:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--author:With -m: an author of the commit; repeatable.' '--expected-hash:Use the contents at this commit as the expected contents, and replace any staged operations on the keys of the command. Some conflict messages print a command with this option that resolves the conflict.' '--no-verify:With -m: skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-m:-' '--message:-' '--author:-' '--expected-hash:hash' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-m' '--message' '--author' '-C'
            set -g __nessie_kinds 'key'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'content rename'
            set -g __nessie_commands 
            set -g __nessie_options '-m:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--message:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--author:With -m: an author of the commit; repeatable.' '--expected-hash:Use the contents at this commit as the expected contents, and replace any staged operations on the keys of the command. Some conflict messages print a command with this option that resolves the conflict.' '--no-verify:With -m: skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-m:-' '--message:-' '--author:-' '--expected-hash:hash' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-m' '--message' '--author' '-C'
            set -g __nessie_kinds 'key' 'key'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content replace'
            set -g __nessie_commands 
            set -g __nessie_options '--type:iceberg-table, iceberg-view, namespace, delta-table or udf. Required without --from-metadata or --content.' '--metadata-location:The metadata file; repeat for the history of a delta-table.' '--snapshot-id:iceberg-table: the current snapshot.' '--schema-id:iceberg-table and iceberg-view: the current schema.' '--spec-id:iceberg-table: the default partition spec.' '--sort-order-id:iceberg-table: the default sort order.' '--version-id:iceberg-view and udf: the current version.' '--sql-text:iceberg-view and udf: the definition.' '--dialect:iceberg-view and udf: the SQL dialect.' '--signature-id:udf: the signature.' '--checkpoint-location:delta-table: a checkpoint; repeatable, oldest first.' '--last-checkpoint:delta-table: the last checkpoint.' '--property:namespace: a property; repeatable.' '--from-metadata:Read the content from an Iceberg metadata file, or from the newest one in a table\'s folder.' '--content:Read the content from a JSON file (-: stdin), as `content show --raw` prints it.' '--id:The content id of the new content. Default: the id in --content, otherwise a new random id.' '-m:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--message:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--author:With -m: an author of the commit; repeatable.' '--expected-hash:Use the contents at this commit as the expected contents, and replace any staged operations on the keys of the command. Some conflict messages print a command with this option that resolves the conflict.' '--no-verify:With -m: skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--type:=iceberg-table,iceberg-view,namespace,delta-table,udf' '--metadata-location:file' '--snapshot-id:-' '--schema-id:-' '--spec-id:-' '--sort-order-id:-' '--version-id:-' '--sql-text:-' '--dialect:-' '--signature-id:-' '--checkpoint-location:file' '--last-checkpoint:file' '--property:-' '--from-metadata:file' '--content:file' '--id:-' '-m:-' '--message:-' '--author:-' '--expected-hash:hash' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--metadata-location' '--checkpoint-location' '--property' '-m' '--message' '--author' '-C'
            set -g __nessie_kinds 'key'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content unmodified'
            set -g __nessie_commands 
            set -g __nessie_options '-m:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--message:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--author:With -m: an author of the commit; repeatable.' '--expected-hash:Use the contents at this commit as the expected contents, and replace any staged operations on the keys of the command. Some conflict messages print a command with this option that resolves the conflict.' '--no-verify:With -m: skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-m:-' '--message:-' '--author:-' '--expected-hash:hash' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-m' '--message' '--author' '-C'
            set -g __nessie_kinds 'key'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'content show'
            set -g __nessie_commands 
            set -g __nessie_options '--at:Same as REV.' '--raw:Print only the JSON of the content, for `content put --content FILE`.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--at:revision' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'key' 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content view'
            set -g __nessie_commands 
            set -g __nessie_options '--at:Same as REV.' '--raw:Print only the JSON of the content, for `content put --content FILE`.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--at:revision' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'key' 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content history'
            set -g __nessie_commands 
            set -g __nessie_options '--at:Same as REV.' '-n:Show at most N commits.' '--max-count:Show at most N commits.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--at:revision' '-n:-' '--max-count:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'key' 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'content list'
            set -g __nessie_commands 
            set -g __nessie_options '--type:List only contents of this type.' '-t:List only contents of this type.' '--filter:List only keys for which this expression over `entry` is true; see nessie-filters(7).' '--tree:Show keys and types as a tree.' '--at:The revision to read. Default: HEAD.' '-r:The revision to read. Default: HEAD.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--type:=iceberg-table,iceberg-view,namespace,delta-table,udf' '-t:=iceberg-table,iceberg-view,namespace,delta-table,udf' '--filter:-' '--at:revision' '-r:revision' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'key'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'reset'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'staged'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'commit'
            set -g __nessie_commands 
            set -g __nessie_options '-m:The message; repeat for paragraphs.' '--message:The message; repeat for paragraphs.' '-F:Read the message from a file.' '--file:Read the message from a file.' '--batch:Commit the operations in FILE instead of the staged batch.' '--author:An author; repeatable. Default: NESSIE_AUTHOR, otherwise the setting author, otherwise the committer.' '--signed-off-by:A person who signed off the commit; repeatable.' '--property:A property; repeatable.' '--author-time:When the change was made, such as 2026-01-31T12:00:00Z. Default: the time of the commit.' '--expected-hash:The commit on which the changes are based, in the first-parent history of the branch. An operation is refused if its key has another content now than at that commit. Exception: a put with an expected content, as staged updates have, is compared with that content.' '--dry-run:Check whether the store would accept the commit, and write nothing. Needs no message.' '--no-verify:Skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-m:-' '--message:-' '-F:file' '--file:file' '--batch:file' '--author:-' '--signed-off-by:-' '--property:-' '--author-time:-' '--expected-hash:hash' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-m' '--message' '--author' '--signed-off-by' '--property' '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'restore'
            set -g __nessie_commands 
            set -g __nessie_options '-m:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--message:Commit immediately with this message; repeat for paragraphs. Fails if other keys are staged.' '--author:With -m: an author of the commit; repeatable.' '--at:The revision to restore from.' '--source:The revision to restore from.' '-s:The revision to restore from.' '--recursive:Also restore all keys below each KEY.' '-r:Also restore all keys below each KEY.' '--no-verify:With -m: skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-m:-' '--message:-' '--author:-' '--at:revision' '--source:revision' '-s:revision' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-m' '--message' '--author' '-C'
            set -g __nessie_kinds 'key'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'revert'
            set -g __nessie_commands 
            set -g __nessie_options '--ours:Keep the current state of this key. Repeatable.' '--theirs:Take the state of this key before the reverted commit. Repeatable.' '-m:The commit message; repeat for paragraphs. Default: a message that names the reverted commit or range.' '--message:The commit message; repeat for paragraphs. Default: a message that names the reverted commit or range.' '--no-commit:Stage the inverse, and do not commit it.' '-n:Stage the inverse, and do not commit it.' '--dry-run:Check for conflicts, and write nothing.' '--no-verify:Skip the pre-commit hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--ours:key' '--theirs:key' '-m:-' '--message:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--ours' '--theirs' '-m' '--message' '-C'
            set -g __nessie_kinds 'range'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'stash'
            set -g __nessie_commands 'push:Stash the staged batch, or the operations of some keys.' 'list:List the stashed batches, newest first.' 'show:Show the operations of a stashed batch.' 'pop:Stage a stashed batch, and delete it from the stash.' 'apply:Stage a stashed batch, and keep it in the stash.' 'drop:Delete a stashed batch.'
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'stash push'
            set -g __nessie_commands 
            set -g __nessie_options '-m:A description for `nessie stash list`.' '--message:A description for `nessie stash list`.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-m:-' '--message:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'staged'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'stash list'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'stash show'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds '-'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'stash pop'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds '-'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'stash apply'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds '-'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'stash drop'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds '-'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'log'
            set -g __nessie_commands 
            set -g __nessie_options '-n:Show at most N commits.' '--max-count:Show at most N commits.' '--number:Show at most N commits.' '--skip:Skip the first N commits.' '--all:Show the commits of every branch and tag; takes no revision.' '--since:Show commits with a commit time at or after this time.' '--after:Show commits with a commit time at or after this time.' '--until:Show commits with a commit time at or before this time.' '--before:Show commits with a commit time at or before this time.' '--author:Show commits with an author that matches this regular expression, or any of them if repeated.' '--committer:Show commits whose committer matches this regular expression, or any of them if repeated.' '--grep:Show commits whose message matches this regular expression, or any of them if repeated.' '-i:Ignore case in --author, --committer and --grep.' '--ignore-case:Ignore case in --author, --committer and --grep.' '--filter:Show commits for which this expression is true; see nessie-filters(7).' '--merges:Show only merges, or no merges.' '--no-merges:Show only merges, or no merges.' '--first-parent:Follow only first parents.' '-x:With --json: include the operations of each commit.' '--extended:With --json: include the operations of each commit.' '--oneline:Show the hash and subject of each commit on one line.' '--graph:Draw the commit graph.' '--stat:Count the contents that each commit created (+), updated (~), deleted (-) and renamed (>).' '--name-status:Show the keys that each commit changed: A created, M updated, D deleted, R renamed.' '-p:Show the changes of each commit, field by field.' '--patch:Show the changes of each commit, field by field.' '--deep:Also read the Iceberg metadata files, and show changes in columns, row count and file count.' '--format:Format each commit using git-style placeholders.' '--pretty:Format each commit using git-style placeholders.' '--reverse:Show the oldest commit first.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-n:-' '--max-count:-' '--number:-' '--skip:-' '--since:-' '--after:-' '--until:-' '--before:-' '--author:-' '--committer:-' '--grep:-' '--filter:-' '--format:-' '--pretty:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--author' '--committer' '--grep' '-C'
            set -g __nessie_kinds 'range'
            set -g __nessie_repeats 0
            set -g __nessie_behind 'key'
        case 'show'
            set -g __nessie_commands 
            set -g __nessie_options '--deep:Also read the Iceberg metadata files, and show changes in columns, row count and file count.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind 'key'
        case 'diff'
            set -g __nessie_commands 
            set -g __nessie_options '--staged:Show the staged changes.' '--cached:Show the staged changes.' '--stat:Show each key with the names of its changed fields, or with the type of a created or deleted content.' '--name-status:Show each key with a letter: A created, M updated, D deleted, R renamed.' '--name-only:Show only keys, and for a rename only the new key.' '--deep:Also read the Iceberg metadata files, and show changes in columns, row count and file count.' '--exit-code:Exit with 1 if there are differences.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'range' 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind 'key'
        case 'branch'
            set -g __nessie_commands 
            set -g __nessie_options '-l:List all branches, or those that match a name or a glob: -l [NAME...]. Default if no name is given.' '--list:List all branches, or those that match a name or a glob: -l [NAME...]. Default if no name is given.' '--contains:List branches that contain REV.' '--no-contains:List branches that do not contain REV.' '--merged:List branches that are merged into REV. Default: HEAD.' '--no-merged:List branches that are not merged into REV. Default: HEAD.' '--points-at:List branches that point at REV.' '--filter:List branches for which this expression over `ref`, `commit` and `refMeta` is true; see nessie-filters(7).' '--sort:Sort by name (default), time (of the last commit), ahead or behind. A leading - reverses, as in -time.' '--show-current:Print the name of the current reference.' '-x:List with the same columns as -v.' '--extended:List with the same columns as -v.' '-d:Delete branches: -d NAME... Exits with 8 if it deletes some and fails for others.' '--delete:Delete branches: -d NAME... Exits with 8 if it deletes some and fails for others.' '-m:Rename OLD, or the current branch, to NEW: -m [OLD] NEW.' '--move:Rename OLD, or the current branch, to NEW: -m [OLD] NEW.' '-f:Assign: point the existing branch NAME at another commit: -f NAME TARGET.' '--force:Assign: point the existing branch NAME at another commit: -f NAME TARGET.' '--if-exists:With -d, -m or -f: succeed if the branch does not exist.' '--if-not-exists:When creating: succeed and do nothing if the branch NAME exists, even at another commit. START must exist.' '--expected-hash:With -d, -m or -f: fail unless the branch is at this commit.' '--yes:Skip the confirmation. nessie asks only on a terminal, and only before it makes commits unreachable.' '-y:Skip the confirmation. nessie asks only on a terminal, and only before it makes commits unreachable.' '--dry-run:Show what would be created, deleted, renamed or assigned, and do nothing.' '-c:Create NEW at the head of OLD, or of the current branch: -c [OLD] NEW.' '--copy:Create NEW at the head of OLD, or of the current branch: -c [OLD] NEW.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--contains:revision' '--no-contains:revision' '--merged:revision?' '--no-merged:revision?' '--points-at:revision' '--filter:-' '--sort:=name,-name,time,-time,ahead,-ahead,behind,-behind' '--expected-hash:hash' '--store:store' '--profile:branch' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'branch' 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'tag'
            set -g __nessie_commands 
            set -g __nessie_options '-l:List all tags, or those that match a name or a glob: -l [NAME...]. Default if no name is given.' '--list:List all tags, or those that match a name or a glob: -l [NAME...]. Default if no name is given.' '--contains:List tags that contain REV.' '--no-contains:List tags that do not contain REV.' '--merged:List tags that are merged into REV. Default: HEAD.' '--no-merged:List tags that are not merged into REV. Default: HEAD.' '--points-at:List tags that point at REV.' '--filter:List tags for which this expression over `ref`, `commit` and `refMeta` is true; see nessie-filters(7).' '--sort:Sort by name (default), time (of the last commit), ahead or behind. A leading - reverses, as in -time.' '--show-current:Print the name of the current reference.' '-x:List with the same columns as -v.' '--extended:List with the same columns as -v.' '-d:Delete tags: -d NAME... Exits with 8 if it deletes some and fails for others.' '--delete:Delete tags: -d NAME... Exits with 8 if it deletes some and fails for others.' '--move:Rename OLD, or the current tag, to NEW: --move [OLD] NEW.' '-f:Assign: point the existing tag NAME at another commit: -f NAME TARGET.' '--force:Assign: point the existing tag NAME at another commit: -f NAME TARGET.' '--if-exists:With -d, --move or -f: succeed if the tag does not exist.' '--if-not-exists:When creating: succeed and do nothing if the tag NAME exists, even at another commit. START must exist.' '--expected-hash:With -d, --move or -f: fail unless the tag is at this commit.' '--yes:Skip the confirmation. nessie asks only on a terminal, and only before it makes commits unreachable.' '-y:Skip the confirmation. nessie asks only on a terminal, and only before it makes commits unreachable.' '--dry-run:Show what would be created, deleted, renamed or assigned, and do nothing.' '-m:The message of a new tag.' '--message:The message of a new tag.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--contains:revision' '--no-contains:revision' '--merged:revision?' '--no-merged:revision?' '--points-at:revision' '--filter:-' '--sort:=name,-name,time,-time,ahead,-ahead,behind,-behind' '--expected-hash:hash' '-m:-' '--message:-' '--store:store' '--profile:tag' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'tag' 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'merge'
            set -g __nessie_commands 
            set -g __nessie_options '--ours:Keep the target branch\'s state of this key. Repeatable.' '--theirs:Take the source\'s state of this key. Repeatable.' '-m:The commit message; repeat for paragraphs. Default: in the style of git, such as Merge branch \'x\' into main.' '--message:The commit message; repeat for paragraphs. Default: in the style of git, such as Merge branch \'x\' into main.' '--resolve:Resolve KEY with the content in FILE (`content show --raw` format; - is stdin). KEY keeps the content id that it has on the branch. Repeatable.' '--follow-renames:Combine a rename on one side with a change on the other.' '--expected-hash:Fail unless this commit is in the first-parent history of the target branch.' '-c:Fail unless this commit is in the first-parent history of the target branch.' '--behavior:For keys without --ours, --theirs or --resolve. normal: take the source\'s change; if both sides changed the key differently, it is a conflict. Exception: if both created the same namespace, theirs is taken. force: always take theirs. drop: always keep ours.' '--dry-run:Show what would happen, and write nothing.' '--deep:Requires --dry-run: show each changed field, with rows, files and schema from the metadata files.' '--into:The branch to merge into. Default: the current branch.' '-b:The branch to merge into. Default: the current branch.' '--unrelated:Merge even if the histories share no commit.' '--no-verify:Skip the pre-merge hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--ours:key' '--theirs:key' '-m:-' '--message:-' '--resolve:key=file' '--expected-hash:hash' '-c:hash' '--behavior:=normal,force,drop' '--into:reference' '-b:reference' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--ours' '--theirs' '-m' '--message' '--resolve' '-C'
            set -g __nessie_kinds 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'resolve'
            set -g __nessie_commands 
            set -g __nessie_options '--ours:Keep the target\'s state of this key; in a transplant, only if it conflicts. Repeatable.' '--theirs:Take the source\'s state of this key; in a revert, the state before the commits. Repeatable.' '-m:The commit message; repeat for paragraphs. Without it, the batch stays staged, a merge or revert has its default message, and a transplant keeps its messages. Not for a transplant of several commits.' '--message:The commit message; repeat for paragraphs. Without it, the batch stays staged, a merge or revert has its default message, and a transplant keeps its messages. Not for a transplant of several commits.' '--resolve:Resolve KEY with the content in FILE (`content show --raw` format; - is stdin). KEY keeps the content id that it has on the branch. Repeatable.' '--follow-renames:For a merge or transplant: combine a rename on one side with a change on the other.' '--expected-hash:For a merge or transplant: fail unless this commit is in the first-parent history of the target branch.' '-c:For a merge or transplant: fail unless this commit is in the first-parent history of the target branch.' '--current:Keep the current state of this key, and drop the staged change. Repeatable.' '--proposed:Keep the staged change of this key. Repeatable.' '--into:For a merge or transplant: the branch to write to. Default: the current branch.' '--onto:For a merge or transplant: the branch to write to. Default: the current branch.' '-b:For a merge or transplant: the branch to write to. Default: the current branch.' '--unrelated:For a merge: merge even if the histories share no commit.' '--no-verify:Skip the hooks pre-commit and pre-merge.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--ours:key' '--theirs:key' '-m:-' '--message:-' '--resolve:key=file' '--expected-hash:hash' '-c:hash' '--current:key' '--proposed:key' '--into:reference' '--onto:reference' '-b:reference' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--ours' '--theirs' '-m' '--message' '--resolve' '--current' '--proposed' '-C'
            set -g __nessie_kinds '=merge,transplant,revert' 'range'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'transplant'
            set -g __nessie_commands 
            set -g __nessie_options '--ours:Keep the target branch\'s state of this key, if the key conflicts. Repeatable.' '--theirs:Take the source\'s state of this key. Repeatable.' '-m:The commit message; repeat for paragraphs. Only for a single commit. Default: each commit keeps its message.' '--message:The commit message; repeat for paragraphs. Only for a single commit. Default: each commit keeps its message.' '--resolve:Resolve KEY with the content in FILE (`content show --raw` format; - is stdin). KEY keeps the content id that it has on the branch. Repeatable.' '--follow-renames:Combine a rename on one side with a change on the other.' '--expected-hash:Fail unless this commit is in the first-parent history of the target branch.' '-c:Fail unless this commit is in the first-parent history of the target branch.' '--behavior:For keys without --ours, --theirs or --resolve. normal: take the source\'s change; if both sides changed the key differently, it is a conflict. Exception: if both created the same namespace, theirs is taken. force: always take theirs. drop: keep ours if the key conflicts.' '--dry-run:Show what would happen, and write nothing.' '--deep:Requires --dry-run: show each changed field, with rows, files and schema from the metadata files.' '--onto:The branch to write to. Default: the current branch.' '-b:The branch to write to. Default: the current branch.' '--source:Ignored; accepted for compatibility. Fails if REF does not exist.' '-s:Ignored; accepted for compatibility. Fails if REF does not exist.' '--no-verify:Skip the pre-merge hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--ours:key' '--theirs:key' '-m:-' '--message:-' '--resolve:key=file' '--expected-hash:hash' '-c:hash' '--behavior:=normal,force,drop' '--onto:reference' '-b:reference' '--source:reference' '-s:reference' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--ours' '--theirs' '-m' '--message' '--resolve' '-C'
            set -g __nessie_kinds 'range'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'cherry-pick'
            set -g __nessie_commands 
            set -g __nessie_options '--ours:Keep the target branch\'s state of this key, if the key conflicts. Repeatable.' '--theirs:Take the source\'s state of this key. Repeatable.' '-m:The commit message; repeat for paragraphs. Only for a single commit. Default: each commit keeps its message.' '--message:The commit message; repeat for paragraphs. Only for a single commit. Default: each commit keeps its message.' '--resolve:Resolve KEY with the content in FILE (`content show --raw` format; - is stdin). KEY keeps the content id that it has on the branch. Repeatable.' '--follow-renames:Combine a rename on one side with a change on the other.' '--expected-hash:Fail unless this commit is in the first-parent history of the target branch.' '-c:Fail unless this commit is in the first-parent history of the target branch.' '--behavior:For keys without --ours, --theirs or --resolve. normal: take the source\'s change; if both sides changed the key differently, it is a conflict. Exception: if both created the same namespace, theirs is taken. force: always take theirs. drop: keep ours if the key conflicts.' '--dry-run:Show what would happen, and write nothing.' '--deep:Requires --dry-run: show each changed field, with rows, files and schema from the metadata files.' '--onto:The branch to write to. Default: the current branch.' '-b:The branch to write to. Default: the current branch.' '--source:Ignored; accepted for compatibility. Fails if REF does not exist.' '-s:Ignored; accepted for compatibility. Fails if REF does not exist.' '--no-verify:Skip the pre-merge hook.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--ours:key' '--theirs:key' '-m:-' '--message:-' '--resolve:key=file' '--expected-hash:hash' '-c:hash' '--behavior:=normal,force,drop' '--onto:reference' '-b:reference' '--source:reference' '-s:reference' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--ours' '--theirs' '-m' '--message' '--resolve' '-C'
            set -g __nessie_kinds 'range'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'blame'
            set -g __nessie_commands 
            set -g __nessie_options '--at:The revision to read. Default: HEAD.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--at:revision' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'key'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'reflog'
            set -g __nessie_commands 
            set -g __nessie_options '--all:Show the operations on all references.' '-n:Show at most N operations.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-n:-' '--store:store' '--profile:-' '--ref:moved' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'moved'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'undo'
            set -g __nessie_commands 
            set -g __nessie_options '--to:Restore REF (default: the reference of operation N) to its state after operation N of the reflog. This undoes all later operations on it.' '--yes:Undo the operation without confirmation.' '-y:Undo the operation without confirmation.' '--dry-run:Show what would be undone, and do nothing.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--to:move' '--store:store' '--profile:-' '--ref:moved' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'moved'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'serve'
            set -g __nessie_commands 
            set -g __nessie_options '--host:The address to listen on.' '--port:The port to listen on; 0 selects a free port.' '--management-port:Also answer health checks and metrics on this port, over plain HTTP. Clients that fill the main port do not delay them.' '--insecure:Start even if other machines can reach the address and neither required tokens nor --rules restrict callers.' '--allowed-host:Answer under this host name; repeatable, or with commas. Implies --insecure. localhost, loopback addresses and the name of --host (but not 0.0.0.0 or ::) are always accepted. Default: NESSIE_ALLOWED_HOSTS. Without either, a server that other machines can reach answers under every IP address, and if all callers must authenticate, also under every name.' '--workers:The number of server processes.' '--tokens:Require a token from callers, and accept those in FILE, which `nessie token new` writes.' '--jwt-issuer:Require a token from callers, and accept JSON Web Tokens from this issuer (claim iss). --jwt-audience is required.' '--jwt-audience:Accept only JSON Web Tokens for this audience (claim aud).' '--jwt-keys:The issuer\'s public keys, a file or URL. Default: from its OpenID configuration.' '--jwt-roles:The claim that contains the roles. It may be nested, such as realm_access.roles.' '--jwt-name:The claim that contains the caller\'s name.' '--rules:Allow only what the rules of FILE grant to a caller. Needs --tokens, --jwt-issuer or --anonymous.' '--anonymous:Allow callers without a token. In the rules, their name and roles are empty.' '--open-metrics:Answer /q/metrics without a token.' '--tls-cert:Use TLS. FILE contains the certificate, followed by its chain (PEM).' '--tls-key:The file with the private key. Default: the file of --tls-cert. If the key is encrypted, NESSIE_TLS_KEY_PASSWORD contains the password.' '--tls-client-ca:Accept only clients with a certificate signed by a CA in FILE (PEM).' '--warehouse:Also serve Iceberg REST under /iceberg, with tables at this location; repeatable. The first warehouse is the default.' '--allow-location:Allow tables at this location outside of the warehouses, too; repeatable.' '--warehouses:A TOML file that defines warehouses: names, locations and storage settings. Cannot be combined with --warehouse or --allow-location.' '--access-log:Log requests to stdout, as lines of JSON.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--host:-' '--port:-' '--management-port:-' '--allowed-host:-' '--workers:-' '--tokens:file' '--jwt-issuer:-' '--jwt-audience:-' '--jwt-keys:file' '--jwt-roles:-' '--jwt-name:-' '--rules:file' '--tls-cert:file' '--tls-key:file' '--tls-client-ca:file' '--warehouse:file?' '--allow-location:file' '--warehouses:file' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--allowed-host' '--warehouse' '--allow-location' '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'token'
            set -g __nessie_commands 'new:Create a token for a caller of `nessie serve`, and print it once.' 'list:List the tokens of a file: id, name, roles, creation and expiry.' 'revoke:Remove tokens from a file.'
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'token new'
            set -g __nessie_commands 
            set -g __nessie_options '--file:The token file of `nessie serve --tokens`. Default: NESSIE_SERVE_TOKENS.' '--roles:The roles of the caller; repeatable, or with commas.' '--expires:When the token expires: 12h, 90d, 8w, or an instant. Default: never.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--file:file' '--roles:-' '--expires:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--roles' '-C'
            set -g __nessie_kinds '-'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'token list'
            set -g __nessie_commands 
            set -g __nessie_options '--file:The token file of `nessie serve --tokens`. Default: NESSIE_SERVE_TOKENS.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--file:file' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'token revoke'
            set -g __nessie_commands 
            set -g __nessie_options '--file:The token file of `nessie serve --tokens`. Default: NESSIE_SERVE_TOKENS.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--file:file' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds '-'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'gc'
            set -g __nessie_commands 'mark:Begin a run: find every table file that a live commit can reach.' 'plan:Find the candidates of a marked run: unreachable files older than the grace period.' 'show:Show a run: its settings, counts, candidates by location, and unreadable contents.' 'approve:Approve the deletion of the candidates of a run.' 'apply:Delete those candidates of a run that are still unreachable.' 'list:List the runs, newest first: state, time and counts.'
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'gc mark'
            set -g __nessie_commands 
            set -g __nessie_options '--runs:The folder of the runs. Default: gc/ in the workspace\'s .nessie/.' '--cutoff:Retention policy for references whose whole name matches this regular expression. Repeatable; the first match applies. Default: all perRefCutoffPolicies of the repository\'s configuration. One --cutoff replaces all of them.' '--default-cutoff:Retention policy for all other references: NONE (keep all commits along first parents), a number of commits, a duration (P30D, 12h) or an instant (keep the commits since then). Default: defaultCutoffPolicy of the repository\'s configuration, or NONE.' '--reference-time:The time from which durations and reflog-expiry count back. Default: now.' '--snapshots:listed (default): keep all snapshots in the metadata file of a live table. referenced: keep only the snapshot that the content names, and those of the table\'s own branches and tags.' '--catalog:Read file-system properties (endpoint, credentials) from this catalog in PyIceberg\'s configuration.' '--engine:Run in this process (local) or on Spark. Default: NESSIE_ENGINE, or local.' '--resume:Resume an interrupted or failed mark with the settings of its run. Cannot be combined with options for these settings. Default of --engine: NESSIE_ENGINE, or the engine of the run.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--runs:folder' '--cutoff:-' '--default-cutoff:-' '--reference-time:-' '--snapshots:=listed,referenced' '--catalog:-' '--engine:=local,spark' '--resume:run' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--cutoff' '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'gc plan'
            set -g __nessie_commands 
            set -g __nessie_options '--runs:The folder of the runs. Default: gc/ in the workspace\'s .nessie/.' '--warehouse:Only files below this location can become candidates. Repeatable. Required for the first plan of a run. Default of a later plan: the locations of the one before.' '--grace:Keep files that changed within this time before the run began: 3d, 36h, P3D. Default: newFilesGracePeriod of the repository\'s garbage collector configuration (set over REST), or 3d. The grace period of an earlier plan is not used.' '--engine:Run in this process (local) or on Spark. Default: NESSIE_ENGINE, or the engine of the run\'s `gc mark`.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--runs:folder' '--warehouse:folder' '--grace:-' '--engine:=local,spark' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '--warehouse' '-C'
            set -g __nessie_kinds 'run'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'gc show'
            set -g __nessie_commands 
            set -g __nessie_options '--runs:The folder of the runs. Default: gc/ in the workspace\'s .nessie/.' '--candidates:List the candidates for deletion. Requires a planned run.' '--kept:List the candidates that `gc apply` did not delete, with the reason. Requires an applied run.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--runs:folder' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'run'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'gc approve'
            set -g __nessie_commands 
            set -g __nessie_options '--runs:The folder of the runs. Default: gc/ in the workspace\'s .nessie/.' '--by:The name of the approver. Default: NESSIE_AUTHOR, the setting author, or the system\'s user.' '--digest:Fail unless the digest of the candidate list begins with this (printed by `gc show`).' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--runs:folder' '--by:-' '--digest:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'run'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'gc apply'
            set -g __nessie_commands 
            set -g __nessie_options '--runs:The folder of the runs. Default: gc/ in the workspace\'s .nessie/.' '--dry-run:Mark again, and count the files that would be deleted. Delete nothing.' '--engine:Run in this process (local) or on Spark. Default: NESSIE_ENGINE, or the engine of the run\'s `gc mark`.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--runs:folder' '--engine:=local,spark' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'run'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'gc list'
            set -g __nessie_commands 
            set -g __nessie_options '--runs:The folder of the runs. Default: gc/ in the workspace\'s .nessie/.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--runs:folder' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'store'
            set -g __nessie_commands 'backup:Write one consistent state of the store to a new SQLite file.' 'load:Load a backup, or any SQLite store, into an empty store.' 'maintain:Delete old unreachable objects, expired reflog entries, and expired request ids.'
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'store backup'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'file'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'store load'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'file'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'store maintain'
            set -g __nessie_commands 
            set -g __nessie_options '--grace:Keep objects that were written within this time (2h or longer). Choose a longer time than the longest commit takes.' '--dry-run:Show what would be deleted, and delete nothing.' '--full:Also rewrite the store to return free space to the file system. Writers wait meanwhile; on PostgreSQL, readers too.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--grace:-' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'fsck'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'audit'
            set -g __nessie_commands 
            set -g __nessie_options '--prefix:Audit only this key and the keys below it. Fails if there are none.' '--engine:Run in this process (local) or on Spark. Default: NESSIE_ENGINE, or local.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--prefix:key' '--engine:=local,spark' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'revision'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'doctor'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'stats'
            set -g __nessie_commands 
            set -g __nessie_options '-n:Show the N most changed keys and, with --sizes, the N largest tables.' '--most:Show the N most changed keys and, with --sizes, the N largest tables.' '--sizes:Also show the largest Iceberg tables. This reads the metadata files of all of them.' '--engine:Run in this process (local) or on Spark. Default: NESSIE_ENGINE, or local.' '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '-n:-' '--most:-' '--engine:=local,spark' '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'range'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'help'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 'page'
            set -g __nessie_repeats 1
            set -g __nessie_behind '-'
        case 'completion'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds '=bash,zsh,fish'
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
        case 'version'
            set -g __nessie_commands 
            set -g __nessie_options '--store:Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or http(s)://host/api/v2. Overrides the environment and the workspace.' '--profile:Use this profile, which names the store and may name the reference.' '--ref:Use this branch, tag or commit as HEAD instead of the workspace\'s current reference.' '--color:Use colour: auto (the default), always or never.' '-C:Work as if started in DIR.' '--json:Print the result as one JSON document.' '--jsonl:Print each record of a listing as one line of JSON.' '--no-pager:Never pipe a long listing into a pager.' '-q:Print no remarks and no progress.' '--quiet:Print no remarks and no progress.' '-v:Print more.' '--verbose:Print more.' '--debug:Show the traceback of a failure.' '-h:Show what the command takes, with examples, and end.' '--help:Show what the command takes, with examples, and end.'
            set -g __nessie_values '--store:store' '--profile:-' '--ref:reference' '--color:=auto,always,never' '-C:folder'
            set -g __nessie_repeatable '-C'
            set -g __nessie_kinds 
            set -g __nessie_repeats 0
            set -g __nessie_behind '-'
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
