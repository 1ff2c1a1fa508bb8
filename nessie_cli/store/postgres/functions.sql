-- The functions that write. Their names end in a version: programs of several versions may use one
-- store at a time, so a change of a function gets the next number and the old one stays.
-- All run at READ COMMITTED: each statement sees what was committed before it began, which is what
-- makes a lock followed by a SELECT read the newest state.

-- Stores objects, given in the order of their ids without repetition, with their index entries.
-- `p_ordinals` is the order in which the caller wrote them. An object that exists already is marked
-- as young if it was last written before `p_old`, so that a sweep that is about to delete it does
-- not.
CREATE FUNCTION put_1(
    p_now bigint, p_old bigint,
    p_ids bytea[], p_ordinals bigint[], p_kinds bigint[], p_data bytea[],
    p_entry_ids bytea[], p_entries bytea[]
) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    wanted CONSTANT bigint := coalesce(cardinality(p_ids), 0);
    -- 2^24 numbers for one call: the caller splits larger ones.
    base CONSTANT bigint := nextval('numbers') << 24;
    found bigint;
BEGIN
    LOOP
        -- In the order of ids: two transactions that store the same objects wait for each other,
        -- but never in a circle.
        INSERT INTO objects (number, written, kind, id, data)
            SELECT base + o.ordinal, p_now, o.kind, o.id, o.data
            FROM unnest(p_ids, p_ordinals, p_kinds, p_data) AS o (id, ordinal, kind, data)
            ON CONFLICT (id) DO NOTHING;
        GET DIAGNOSTICS found = ROW_COUNT;
        EXIT WHEN found = wanted;
        -- Some exist. Lock those that a sweep may take; then all must still be there.
        PERFORM refresh_1(p_now, p_old, p_ids);
        SELECT count(*) INTO found FROM objects WHERE id = ANY (p_ids);
        EXIT WHEN found = wanted;
    END LOOP;
    IF cardinality(p_entries) > 0 THEN
        INSERT INTO index_entries (number, entry, id)
            SELECT o.number, e.entry, o.id FROM unnest(p_entry_ids, p_entries) AS e (id, entry)
            JOIN objects o ON o.id = e.id AND o.number >= base AND o.number < base + (1 << 24)
            ON CONFLICT DO NOTHING;
    END IF;
END
$function$;

-- The same for a large load, whose objects were copied into the temporary tables `staged_objects` (in
-- the order of ids) and `staged_entries`.
CREATE FUNCTION load_1(p_now bigint, p_old bigint) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    wanted bigint;
    base CONSTANT bigint := nextval('numbers') << 24;
    found bigint;
BEGIN
    SELECT count(*) INTO wanted FROM staged_objects;
    LOOP
        INSERT INTO objects (number, written, kind, id, data)
            SELECT base + s.ordinal, p_now, s.kind, s.id, s.data FROM staged_objects s
            ON CONFLICT (id) DO NOTHING;
        GET DIAGNOSTICS found = ROW_COUNT;
        EXIT WHEN found = wanted;
        PERFORM refresh_1(p_now, p_old, ARRAY(SELECT id FROM staged_objects));
        SELECT count(*) INTO found FROM objects o
            WHERE o.id = ANY (ARRAY(SELECT s.id FROM staged_objects s));
        EXIT WHEN found = wanted;
    END LOOP;
    INSERT INTO index_entries (number, entry, id)
        SELECT o.number, e.entry, o.id FROM staged_entries e
        JOIN objects o ON o.id = e.id AND o.number >= base AND o.number < base + (1 << 24)
        ON CONFLICT DO NOTHING;
END
$function$;

-- Marks old objects as young, in the order of their ids.
CREATE FUNCTION refresh_1(p_now bigint, p_old bigint, p_ids bytea[])
RETURNS void LANGUAGE sql AS $function$
    WITH old AS MATERIALIZED (
        SELECT id FROM objects WHERE id = ANY (p_ids) AND written < p_old ORDER BY id FOR UPDATE
    )
    UPDATE objects SET written = p_now WHERE id = ANY (ARRAY(SELECT id FROM old));
$function$;

-- The advisory lock of a subject, in this schema only.
CREATE FUNCTION lock_key_1(p_subject text) RETURNS bigint LANGUAGE sql STABLE AS $function$
    SELECT hashtextextended((current_schema() || ' ' || p_subject) COLLATE "C", 0)
$function$;

-- Decides writes in order and applies those that are done, in one transaction and one round trip.
--
-- Writes are numbered from 1. Lists of moves, required ids and settings are flat; each begins with
-- the numbers of the writes that its rows belong to. Objects are listed once, for `put_1`;
-- `p_user_writes` and `p_user_objects` are the pairs of a write and an object that it stores, by
-- position. `p_previous` is the write before that has the same request id. Moves name their
-- reference by its position in `p_names`, which is sorted. `p_settings_lock` is 0 (settings do not
-- matter), 1 (they are required) or 2 (changed).
--
-- The order of locks is the same for all: leases, settings, request ids, references, objects; each
-- in its own sorted order.
CREATE FUNCTION commit_1(
    p_attempt bytea, p_now bigint, p_old bigint, p_settings_lock bigint, p_leased text[],
    p_request_ids text[], p_callers text[], p_digests bytea[], p_results bytea[], p_times bigint[],
    p_previous bigint[], p_settings_versions bigint[],
    p_names text[],
    p_move_writes bigint[], p_move_names bigint[], p_move_kinds text[],
    p_befores bytea[], p_afters bytea[], p_move_times bigint[], p_whos text[],
    p_operations text[], p_messages text[], p_move_requests text[],
    p_required_writes bigint[], p_required bytea[],
    p_user_writes bigint[], p_user_objects bigint[],
    p_ids bytea[], p_ordinals bigint[], p_kinds bigint[], p_data bytea[],
    p_entry_ids bytea[], p_entries bytea[],
    p_setting_writes bigint[], p_setting_names text[], p_setting_values text[]
) RETURNS TABLE (
    o_outcome text, o_name text, o_kind text, o_target bytea,
    o_request text, o_caller text, o_digest bytea, o_result bytea, o_time bigint
) LANGUAGE plpgsql AS $function$
DECLARE
    writes CONSTANT bigint := cardinality(p_request_ids);
    moves CONSTANT bigint := cardinality(p_move_writes);
    unclaimed bigint;           -- how many request ids exist already
    taken text[] := '{}';       -- those of them that were committed before
    tombstones text[] := '{}';  -- the others: given up by earlier attempts
    missing bytea[] := '{}';    -- required objects that do not exist
    version_before bigint;
    version_after bigint;
    kinds_before text[]; targets_before bytea[];  -- the references by position, as they are,
    kinds text[]; targets bytea[];                -- as the writes so far leave them,
    new_kinds text[]; new_targets bytea[];        -- and as the present write would leave them
    done boolean[] := array_fill(false, ARRAY[writes::int]);
    used_by bigint[] := array_fill(NULL::bigint, ARRAY[writes::int]);
    all_done boolean := true;
    w bigint;
    m bigint := 1;
    i bigint;
    existing record;
    base bigint;
BEGIN
    -- Locks. A lease makes the commits of other sessions wait; the session that holds it passes.
    PERFORM pg_advisory_xact_lock_shared(lock_key_1('lease ' || n)) FROM unnest(p_leased) AS n;
    IF p_settings_lock = 1 THEN
        PERFORM pg_advisory_xact_lock_shared(lock_key_1('settings'));
    ELSIF p_settings_lock = 2 THEN
        PERFORM pg_advisory_xact_lock(lock_key_1('settings'));
    END IF;
    IF p_settings_lock > 0 THEN
        SELECT settings_version INTO version_before FROM store;
        version_after := version_before;
    END IF;

    -- Claim the request ids. This waits for other transactions that claim the same ones.
    WITH given AS (
        SELECT DISTINCT ON (q.id COLLATE "C") q.*
        FROM unnest(p_request_ids, p_times, p_callers, p_digests, p_results) WITH ORDINALITY
            AS q (id, time, caller, digest, result, n)
        WHERE q.id <> '' ORDER BY q.id COLLATE "C", q.n
    ), claims AS (
        INSERT INTO requests (id, time, caller, digest, result, attempt)
            SELECT id, time, caller, digest, result, p_attempt FROM given
            ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT (SELECT count(*) FROM given) - (SELECT count(*) FROM claims) INTO unclaimed;
    IF unclaimed > 0 THEN
        FOR existing IN
            SELECT r.id, r.result IS NOT NULL AS committed, r.excluded FROM requests r
            WHERE r.id = ANY (p_request_ids) AND r.attempt IS DISTINCT FROM p_attempt
            ORDER BY r.id FOR UPDATE
        LOOP
            unclaimed := unclaimed - 1;
            IF existing.committed THEN
                taken := taken || existing.id;
            ELSIF p_attempt = ANY (existing.excluded) THEN
                RAISE EXCEPTION 'this attempt was given up by its client'
                    USING ERRCODE = 'transaction_rollback';
            ELSE
                tombstones := tombstones || existing.id;
            END IF;
        END LOOP;
        IF unclaimed <> 0 THEN
            RAISE EXCEPTION 'a request was deleted meanwhile'
                USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;

    -- Lock the references and read their current state. If another transaction creates one of
    -- them later, the unique index prevents this transaction from creating it again.
    IF moves > 0 THEN
        WITH locked AS MATERIALIZED (
            SELECT r.name, r.kind, r.target FROM refs r
            WHERE r.name = ANY (p_names) ORDER BY r.name FOR UPDATE
        )
        SELECT array_agg(l.kind ORDER BY n.position), array_agg(l.target ORDER BY n.position)
            INTO kinds_before, targets_before
            FROM unnest(p_names) WITH ORDINALITY AS n (name, position)
            LEFT JOIN locked l ON l.name = n.name;
        kinds := kinds_before;
        targets := targets_before;
    END IF;

    IF cardinality(p_required) > 0 THEN
        PERFORM refresh_1(p_now, p_old, p_required);
        SELECT coalesce(array_agg(r.id), '{}') INTO missing FROM unnest(p_required) AS r (id)
            WHERE NOT EXISTS (SELECT FROM objects o WHERE o.id = r.id);
    END IF;

    -- Decide.
    FOR w IN 1 .. writes LOOP
        o_outcome := 'done';
        o_name := NULL; o_kind := NULL; o_target := NULL;
        o_request := NULL; o_caller := NULL; o_digest := NULL; o_result := NULL; o_time := NULL;
        i := used_by[p_previous[w]];
        IF taken <> '{}' AND p_request_ids[w] = ANY (taken) THEN
            o_outcome := 'repeated';
            SELECT r.id, r.caller, r.digest, r.result, r.time
                INTO o_request, o_caller, o_digest, o_result, o_time
                FROM requests r WHERE r.id = p_request_ids[w];
        ELSIF i IS NOT NULL THEN
            o_outcome := 'repeated';
            used_by[w] := i;
            o_request := p_request_ids[i]; o_caller := p_callers[i]; o_digest := p_digests[i];
            o_result := p_results[i]; o_time := p_times[i];
        END IF;

        new_kinds := kinds;
        new_targets := targets;
        WHILE m <= moves AND p_move_writes[m] = w LOOP
            i := p_move_names[m];
            IF o_outcome <> 'done' THEN
                NULL;
            ELSIF new_targets[i] IS DISTINCT FROM p_befores[m]
                OR (p_befores[m] IS NOT NULL AND new_kinds[i] <> p_move_kinds[m])
            THEN
                o_outcome := 'reference';
                o_name := p_names[i]; o_kind := new_kinds[i]; o_target := new_targets[i];
            ELSE
                new_targets[i] := p_afters[m];
                new_kinds[i] := CASE WHEN p_afters[m] IS NOT NULL THEN p_move_kinds[m] END;
            END IF;
            m := m + 1;
        END LOOP;

        IF o_outcome = 'done' AND missing <> '{}' AND EXISTS (
            SELECT FROM unnest(p_required_writes, p_required) AS r (write, id)
            WHERE r.write = w AND r.id = ANY (missing) AND NOT EXISTS (
                SELECT FROM unnest(p_user_writes, p_user_objects) AS u (write, object)
                WHERE p_ids[u.object] = r.id AND (u.write = w OR done[u.write])
            )
        ) THEN
            o_outcome := 'object';
        END IF;
        IF o_outcome = 'done' AND p_settings_versions[w] <> version_after THEN
            o_outcome := 'settings';
        END IF;

        IF o_outcome = 'done' THEN
            done[w] := true;
            kinds := new_kinds;
            targets := new_targets;
            IF p_request_ids[w] <> '' THEN
                used_by[w] := w;
            END IF;
            IF w = ANY (p_setting_writes) THEN
                version_after := version_after + 1;
            END IF;
        ELSE
            all_done := false;
        END IF;
        RETURN NEXT;
    END LOOP;

    -- Give back the request ids of writes that are not done, and record those that replace a
    -- tombstone or the claim of an earlier write.
    IF NOT all_done THEN
        DELETE FROM requests r USING unnest(p_request_ids) AS q (id)
            WHERE r.id = q.id AND r.attempt = p_attempt AND NOT EXISTS (
                SELECT FROM unnest(p_request_ids, done) AS other (id, is_done)
                WHERE other.id = q.id AND other.is_done
            );
        IF NOT (true = ANY (done)) THEN
            -- Nothing was written that would have to survive a crash.
            PERFORM set_config('synchronous_commit', 'off', true);
            RETURN;
        END IF;
    END IF;
    IF NOT all_done OR tombstones <> '{}' THEN
        UPDATE requests r SET time = q.time, caller = q.caller, digest = q.digest,
                result = q.result, attempt = p_attempt
            FROM unnest(p_request_ids, p_times, p_callers, p_digests, p_results, done)
                AS q (id, time, caller, digest, result, is_done)
            WHERE r.id = q.id AND q.is_done;
    END IF;

    -- Apply what is done, each table by one statement.
    IF all_done THEN
        PERFORM put_1(p_now, p_old, p_ids, p_ordinals, p_kinds, p_data, p_entry_ids, p_entries)
            WHERE cardinality(p_ids) > 0;
    ELSE
        -- What only refused writes have brought is left out, and the order is that of the others.
        PERFORM put_1(p_now, p_old, array_agg(o.id ORDER BY o.n), array_agg(u.first ORDER BY o.n),
                array_agg(o.kind ORDER BY o.n), array_agg(o.data ORDER BY o.n),
                p_entry_ids, p_entries)
            FROM unnest(p_ids, p_kinds, p_data) WITH ORDINALITY AS o (id, kind, data, n)
            JOIN (
                SELECT object, min(n) FROM unnest(p_user_writes, p_user_objects) WITH ORDINALITY
                    AS u (write, object, n)
                WHERE done[write] GROUP BY object
            ) AS u (object, first) ON u.object = o.n
            HAVING count(*) > 0;
    END IF;

    IF moves > 0 THEN
        IF array_position(targets, NULL) IS NOT NULL THEN
            DELETE FROM refs r USING unnest(p_names, targets) AS n (name, target)
                WHERE r.name = n.name AND n.target IS NULL;
        END IF;
        UPDATE refs r SET kind = n.kind, target = n.target
            FROM unnest(p_names, kinds, targets) AS n (name, kind, target)
            WHERE r.name = n.name AND (r.kind <> n.kind OR r.target <> n.target);
        IF array_position(targets_before, NULL) IS NOT NULL THEN
            INSERT INTO refs (name, kind, target)
                SELECT n.name, n.kind, n.target
                FROM unnest(p_names, kinds, targets, targets_before)
                    AS n (name, kind, target, before)
                WHERE n.before IS NULL AND n.target IS NOT NULL;
        END IF;
        base := nextval('numbers') << 24;
        INSERT INTO reflog (number, time, name, kind, before, after,
                who, operation, message, request_id)
            SELECT base + l.n, l.time, p_names[l.name], l.kind, l.before, l.after,
                l.who, l.operation, l.message, l.request_id
            FROM unnest(p_move_writes, p_move_names, p_move_kinds, p_befores, p_afters,
                    p_move_times, p_whos, p_operations, p_messages, p_move_requests)
                WITH ORDINALITY AS l (write, name, kind, before, after,
                    time, who, operation, message, request_id, n)
            WHERE done[l.write];
    END IF;

    IF version_after <> version_before THEN
        UPDATE store SET settings_version = version_after;
        WITH latest AS (
            SELECT DISTINCT ON (s.name) s.name, s.value
            FROM unnest(p_setting_writes, p_setting_names, p_setting_values) WITH ORDINALITY
                AS s (write, name, value, n)
            WHERE done[s.write] ORDER BY s.name, s.n DESC
        ), removed AS (
            DELETE FROM settings USING latest
            WHERE settings.name = latest.name AND latest.value IS NULL
        )
        INSERT INTO settings AS s (name, value)
            SELECT latest.name, latest.value FROM latest WHERE latest.value IS NOT NULL
            ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    END IF;
END
$function$;
