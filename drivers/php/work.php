<?php
// PHP's pgsql and PDO. PDO prepares by name at its first execution, and deallocates when a statement goes.
const WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash";

function check($seen, $wanted) {
    if ($seen !== $wanted) throw new Exception(var_export($wanted, true) . ' wanted, not ' . substr(var_export($seen, true), 0, 500));
}

// Host, port, user, password, database and TLS come from the PG* environment.
function connect() { return pg_connect('', PGSQL_CONNECT_FORCE_NEW); }

function pdo($options = []) {
    return new PDO('pgsql:', getenv('PGUSER'), getenv('PGPASSWORD'), $options + [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

function value($result) { return pg_fetch_result($result, 0, 0); }

/** Runs a query that has to fail with this SQLSTATE. */
function fails($db, $code, $sql, $parameters = null) {
    if ($parameters === null) pg_send_query($db, $sql); else pg_send_query_params($db, $sql, $parameters);
    $seen = null;
    while ($result = pg_get_result($db)) $seen = pg_result_error_field($result, PGSQL_DIAG_SQLSTATE) ?: $seen;
    check($seen, $code);
}

function pdo_fails($code, $work) {
    try { $work(); } catch (PDOException $error) { check($error->getCode(), $code); return; }
    throw new Exception("no $code");
}

function with_pgsql() {
    $db = connect();
    check(pg_client_encoding($db), 'UTF8');
    pg_query($db, 'set client_min_messages = warning; drop table if exists php_t; create table php_t (id int primary key, word text, amount numeric)');
    pg_prepare($db, 'insert', 'insert into php_t values ($1, $2, $3)');
    pg_query($db, 'begin');
    for ($id = 0; $id < 12; $id++) pg_execute($db, 'insert', [$id, WORD, $id]);
    pg_query($db, 'rollback');
    check(value(pg_query($db, 'select count(*) from php_t')), '0');
    pg_query($db, 'begin');
    for ($id = 0; $id < 12; $id++) pg_execute($db, 'insert', [$id, WORD, $id]);
    pg_query($db, 'savepoint before');
    fails($db, '23505', "insert into php_t values (3, 'twice', 0)");
    fails($db, '25P02', 'select 1');
    pg_query($db, 'rollback to savepoint before');
    pg_query_params($db, 'update php_t set amount = amount + 1 where id = $1', [3]);
    pg_query($db, 'commit');
    check(value(pg_query($db, 'select amount from php_t where id = 3')), '4');
    for ($turn = 0; $turn < 7; $turn++) {
        fails($db, '23505', 'insert into php_t values ($1, $2, 0)', [1, 'twice']);
        fails($db, '42601', 'selec 1');
        fails($db, '22012', 'select 1 / $1::int', [0]);
        fails($db, '42P01', 'select * from php_none');
        check(pg_fetch_row(pg_query_params($db, 'select $1::text, $2::int', [WORD, null])), [WORD, null]);
        check(value(pg_query_params($db, 'select $1::bytea', [pg_escape_bytea($db, "\0\x01\xff'\\")])), '\x0001ff275c');
    }
    // The old calls for rows: insert, select, update, delete.
    check(pg_insert($db, 'php_t', ['id' => 50, 'word' => WORD, 'amount' => 1]) !== false, true);
    check(pg_select($db, 'php_t', ['id' => 50])[0]['word'], WORD);
    check(pg_delete($db, 'php_t', ['id' => 50]), true);
    // COPY
    pg_query($db, 'drop table if exists php_c; create table php_c (id int, word text)');
    $rows = [];
    for ($n = 0; $n < 6000; $n++) $rows[] = "$n\t" . ($n % 2 ? str_replace('\\', '\\\\', WORD) : '\N') . "\n";
    check(pg_copy_from($db, 'php_c', $rows), true);
    check(pg_copy_to($db, '(select * from php_c order by id)') === $rows, true);
    for ($turn = 0; $turn < 3; $turn++) {
        check(@pg_copy_from($db, 'php_c', ["no number\tx\n"]), false);
        check(value(pg_query($db, 'select count(*) from php_c')), '6000');
    }
    // Large objects
    $part = str_repeat(implode('', array_map('chr', range(0, 255))), 64);
    pg_query($db, 'begin');
    $oid = pg_lo_create($db);
    $object = pg_lo_open($db, $oid, 'w+');
    for ($n = 0; $n < 16; $n++) check(pg_lo_write($object, $part), strlen($part));
    pg_lo_seek($object, strlen($part), PGSQL_SEEK_SET);
    check(pg_lo_read($object, strlen($part)) === $part, true);
    pg_lo_close($object);
    pg_lo_unlink($db, $oid);
    pg_query($db, 'commit');
    // Big results
    check(pg_num_rows(pg_query($db, "select g, repeat('x', 500) from generate_series(1, 20000) g")), 20000);
    check(strlen(value(pg_query_params($db, 'select $1::text', [str_repeat('y', 2000000)]))), 2000000);
    for ($turn = 0; $turn < 2; $turn++) {
        pg_send_query($db, 'select pg_sleep(20)');
        usleep(150000);
        check(pg_cancel_query($db), true);
        check(value(pg_query($db, 'select 1')), '1');
    }
    // DDL under a prepared statement
    pg_prepare($db, 'word', 'select word from php_t where id = $1');
    for ($turn = 0; $turn < 6; $turn++) pg_execute($db, 'word', [5]);
    pg_query($db, 'alter table php_t alter column amount type float8');
    check(value(pg_execute($db, 'word', [5])), WORD);
    // What lives as long as a session
    pg_query($db, 'listen php_channel; create temp table php_temp (x int); select pg_advisory_lock(82)');
    $other = connect();
    check(value(pg_query($other, 'select pg_try_advisory_lock(82)')), 'f');
    pg_query_params($other, "select pg_notify('php_channel', $1)", [WORD]);
    pg_close($other);
    for ($turn = 0; $turn < 500 && !($notice = pg_get_notify($db)); $turn++) usleep(10000);
    check($notice['payload'], WORD);
    pg_query($db, 'insert into php_temp values (1)');
    pg_query($db, 'discard all');
    // Lost, and back again
    fails($db, '57P01', 'select pg_terminate_backend(pg_backend_pid())');
    check(pg_connection_status($db), PGSQL_CONNECTION_BAD);
    check(pg_connection_reset($db), true);
    check(value(pg_query($db, 'select 1')), '1');
    $lost = connect();
    pg_query($lost, "begin; insert into php_t values (777, 'lost', 0)");
    pg_close($lost);
    check(value(pg_query($db, 'select count(*) from php_t where id = 777')), '0');
    // Several at once, from one process: each has asked before any is read.
    $many = array_map(fn($n) => connect(), range(0, 7));
    for ($turn = 0; $turn < 10; $turn++) {
        foreach ($many as $n => $one) pg_send_query_params($one, 'select $1::int * 2', [$n]);
        foreach ($many as $n => $one) {
            check(value(pg_get_result($one)), (string)(2 * $n));
            check(pg_get_result($one), false);
        }
    }
    array_map('pg_close', $many);
    // Connections that PHP keeps for the next request.
    $kept = pg_pconnect('');
    check(value(pg_query($kept, 'select 1')), '1');
    pg_close($kept);
    pg_close($db);
}

function with_pdo($options) {
    $db = pdo($options);
    $insert = $db->prepare('insert into php_t values (:id, :word, :amount)');
    $db->beginTransaction();
    for ($id = 100; $id < 112; $id++) $insert->execute(['id' => $id, 'word' => WORD, 'amount' => $id]);
    $db->rollBack();
    check((int)$db->query('select count(*) from php_t where id >= 100')->fetchColumn(), 0);
    $db->beginTransaction();
    for ($id = 100; $id < 112; $id++) $insert->execute(['id' => $id, 'word' => WORD, 'amount' => $id]);
    $db->exec('savepoint before');
    pdo_fails('23505', fn() => $insert->execute(['id' => 103, 'word' => 'twice', 'amount' => 0]));
    pdo_fails('25P02', fn() => $db->query('select 1'));
    $db->exec('rollback to savepoint before');
    $db->commit();
    $select = $db->prepare('select word, ?::int, ?::bool from php_t where id = ?');
    for ($turn = 0; $turn < 12; $turn++) {
        $select->execute([null, 'true', 100 + $turn]);
        check($select->fetchAll(PDO::FETCH_NUM), [[WORD, null, true]]);
        pdo_fails('23505', fn() => $insert->execute(['id' => 103, 'word' => 'twice', 'amount' => 0]));
        pdo_fails('42601', fn() => $db->query('selec 1'));
        pdo_fails('22012', fn() => $db->prepare('select 1 / ?::int')->execute([0]));
        // Each of these is prepared and deallocated.
        check((int)$db->prepare("select ?::int + $turn")->execute([1]), 1);
    }
    $binary = $db->prepare('select ?::bytea');
    $binary->bindValue(1, "\0\x01\xff", PDO::PARAM_LOB);
    $binary->execute();
    check(stream_get_contents($binary->fetchColumn()), "\0\x01\xff");
    check($db->pgsqlCopyFromArray('php_c', ["1\tone\n", "2\ttwo\n"]), true);
    check(count($db->pgsqlCopyToArray('php_c')), 6002);
    $db->exec('delete from php_c where id in (1, 2) and word in (\'one\', \'two\')');
    $db->beginTransaction();
    $oid = $db->pgsqlLOBCreate();
    $stream = $db->pgsqlLOBOpen($oid, 'w');
    fwrite($stream, str_repeat('z', 100000));
    $stream = null;
    check(strlen(stream_get_contents($db->pgsqlLOBOpen($oid, 'r'))), 100000);
    $db->pgsqlLOBUnlink($oid);
    $db->commit();
    $cursor = [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL];
    $db->beginTransaction();
    $rows = $db->prepare('select g from generate_series(1, 500) g', $cursor);
    $rows->execute();
    $sum = 0;
    while ($row = $rows->fetch(PDO::FETCH_NUM)) $sum += $row[0];
    check($sum, 125250);
    $rows = null;
    $db->commit();
    $db->exec('delete from php_t where id >= 100');
}

with_pgsql();
with_pdo([]);
with_pdo([PDO::ATTR_EMULATE_PREPARES => true]);
with_pdo([PDO::PGSQL_ATTR_DISABLE_PREPARES => true]);
with_pdo([PDO::ATTR_PERSISTENT => true]);
$db = connect();
pg_query($db, 'drop table php_t, php_c');
pg_close($db);
