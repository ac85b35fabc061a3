# Perl's DBD::Pg at its defaults: a statement is prepared by name from its second execution on.
use strict;
use warnings;
use utf8;
use DBI;
use DBD::Pg qw(:pg_types :async);

my $word = q(Ünïcödé 漢字 🐘 'quoted' "double" back\slash);

# Host, port, user, password, database and TLS come from the PG* environment.
sub connect_to { return DBI->connect('dbi:Pg:', '', '', {RaiseError => 1, PrintError => 0, AutoCommit => 1, @_}) }

sub check {
    my ($seen, $wanted) = @_;
    $_ = defined $_ ? ref $_ ? join('|', map { $_ // 'NULL' } @$_) : $_ : 'NULL' for $seen, $wanted;
    die sprintf "%s wanted, not %s, in line %d\n", $wanted, substr($seen, 0, 500), (caller)[2] if $seen ne $wanted;
}

sub fails {
    my ($db, $code, $work) = @_;
    die "no $code, in line " . (caller)[2] if eval { $work->(); 1 };
    die "$code wanted, not " . $db->state . ": $@" if $db->state ne $code;
}

my $db = connect_to();
$db->do('set client_min_messages = warning');
$db->do('drop table if exists dbdpg_t');
$db->do('create table dbdpg_t (id int primary key, word text, amount numeric)');

# Types
my %values = (int2 => 32767, int4 => -5, int8 => '4611686018427387904', float8 => 0.1, numeric => '12345678901234567890.123456789', text => $word,
    date => '2024-02-29', uuid => '12345678-1234-5678-1234-567812345678', 'int4[]' => [1, undef, 3], 'text[]' => [$word, '', undef, '{,}']);
for my $kind (sort keys %values) {
    my $statement = $db->prepare("select ?::$kind");
    for (1 .. 8) {
        $statement->execute($values{$kind});
        check($statement->fetchrow_arrayref->[0], $values{$kind});
        $statement->execute(undef);
        check($statement->fetchrow_arrayref->[0], undef);
    }
}
my $bytes = join '', map { chr } 0 .. 255;
for (1 .. 3) {
    my $statement = $db->prepare('select ?::bytea');
    $statement->bind_param(1, $bytes, {pg_type => PG_BYTEA});
    $statement->execute;
    check($statement->fetchrow_arrayref->[0], $bytes);
}

# Transactions
my $insert = $db->prepare('insert into dbdpg_t values (?, ?, ?)');
$db->begin_work;
$insert->execute($_, $word, $_) for 0 .. 11;
$db->rollback;
check($db->selectrow_array('select count(*) from dbdpg_t'), 0);
$db->begin_work;
$insert->execute($_, $word, $_) for 0 .. 11;
$db->pg_savepoint('before');
fails($db, '23505', sub { $insert->execute(3, 'twice', 0) });
fails($db, '25P02', sub { $db->do('select 1') });
$db->pg_rollback_to('before');
$db->do('update dbdpg_t set amount = amount + 1 where id = ?', undef, 3);
$db->commit;
check($db->selectrow_array('select amount from dbdpg_t where id = 3'), 4);

# Mistakes
for (1 .. 7) {
    fails($db, '23505', sub { $insert->execute(1, 'twice', 0) });
    fails($db, '42601', sub { $db->do('selec 1') });
    fails($db, '22012', sub { $db->selectrow_array('select 1 / ?::int', undef, 0) });
    fails($db, '42P01', sub { $db->selectrow_array('select * from dbdpg_none') });
    check($db->ping, 3 - 2);
}

# COPY
$db->do('drop table if exists dbdpg_c');
$db->do('create table dbdpg_c (id int, word text)');
(my $escaped = $word) =~ s/\\/\\\\/g;
$db->do('copy dbdpg_c from stdin');
$db->pg_putcopydata("$_\t" . ($_ % 2 ? $escaped : '\\N') . "\n") for 0 .. 5999;
$db->pg_putcopyend;
$db->do('copy (select * from dbdpg_c order by id) to stdout');
my ($line, $lines) = ('', 0);
while ($db->pg_getcopydata($line) >= 0) {
    check($line, "$lines\t" . ($lines % 2 ? $escaped : '\\N') . "\n");
    $lines++;
}
check($lines, 6000);
for (1 .. 3) {
    $db->do('copy dbdpg_c (id) from stdin');
    $db->pg_putcopydata("no number\n");
    fails($db, '22P02', sub { $db->pg_putcopyend });
    check($db->selectrow_array('select count(*) from dbdpg_c'), 6000);
}

# Large objects
my $part = $bytes x 64;
$db->begin_work;
my $oid = $db->pg_lo_creat($db->{pg_INV_WRITE} | $db->{pg_INV_READ});
my $object = $db->pg_lo_open($oid, $db->{pg_INV_WRITE} | $db->{pg_INV_READ});
check($db->pg_lo_write($object, $part, length $part), length $part) for 1 .. 16;
$db->pg_lo_lseek($object, length $part, 0);
my $read = '';
check($db->pg_lo_read($object, $read, length $part), length $part);
check($read, $part);
$db->pg_lo_close($object);
$db->pg_lo_unlink($oid);
$db->commit;

# Big results, and cursors
check(scalar @{$db->selectall_arrayref("select g, repeat('x', 500) from generate_series(1, 20000) g")}, 20000);
check(length $db->selectrow_array('select ?::text', undef, 'y' x 2000000), 2000000);
$db->begin_work;
$db->do('declare dbdpg_cursor cursor for select g from generate_series(1, 500) g');
check(scalar @{$db->selectall_arrayref('fetch 77 from dbdpg_cursor')}, 77);
check(scalar @{$db->selectall_arrayref('fetch all from dbdpg_cursor')}, 423);
$db->commit;

# Queries that are not waited for; one is cancelled.
for (1 .. 2) {
    $db->do('select pg_sleep(20)', {pg_async => PG_ASYNC});
    select undef, undef, undef, 0.15;
    $db->pg_cancel;
    check($db->selectrow_array('select 1'), 1);
    my $later = $db->prepare('select ?::int', {pg_async => PG_ASYNC});
    $later->execute(5);
    $db->pg_result;
    check($later->fetchrow_arrayref->[0], 5);
}

# DDL under a prepared statement
my $select = $db->prepare('select word from dbdpg_t where id = ?');
check($db->selectrow_array($select, undef, 5), $word) for 1 .. 6;
$db->do('alter table dbdpg_t alter column amount type float8');
check($db->selectrow_array($select, undef, 5), $word);

# What lives as long as a session
{
    $db->do($_) for 'listen dbdpg_channel', 'create temp table dbdpg_temp (x int)', 'select pg_advisory_lock(83)';
    my $other = connect_to();
    check($other->selectrow_array('select pg_try_advisory_lock(83)'), 0);
    $other->do('select pg_notify(?, ?)', undef, 'dbdpg_channel', $word);
    $other->disconnect;
    my $notice;
    for (1 .. 500) { last if $notice = $db->pg_notifies; select undef, undef, undef, 0.01 }
    check([@$notice[0, 2]], ['dbdpg_channel', $word]);
    $db->do('insert into dbdpg_temp values (1)');
    $db->do('unlisten *');
    $db->do('select pg_advisory_unlock(83)');
    $db->do('drop table dbdpg_temp');
}
undef $_ for $insert, $select;
$db->disconnect;

# Many at once: a process each.
my @children;
for my $number (0 .. 7) {
    my $child = fork // die "fork: $!";
    if ($child) { push @children, $child; next }
    my $db = connect_to();
    my $twice = $db->prepare('select ?::int * 2, ?::text');
    my $own = $db->prepare("select ?::int + $number");
    for my $turn (1 .. 20) {
        $db->begin_work;
        check([$db->selectrow_array($twice, undef, $number, $turn)], [2 * $number, $turn]);
        $db->do('update dbdpg_t set amount = amount + 1 where id = ?', undef, $number);
        $db->commit;
        check($db->selectrow_array($own, undef, $turn), $turn + $number);
    }
    undef $_ for $twice, $own;
    $db->disconnect;
    exit 0;
}
for (@children) { waitpid $_, 0; die "a process failed\n" if $? }

# Lost, and back again
for my $number (1 .. 10) {
    my $db = connect_to();
    my $statement = $db->prepare('select ?::int');
    check($db->selectrow_array($statement, undef, $number), $number) for 1 .. 6;
    undef $statement;
    $db->disconnect;
}
$db = connect_to();
die "still there" if eval { $db->do('select pg_terminate_backend(pg_backend_pid())'); 1 };
check($db->ping ? 1 : 0, 0);
$db = connect_to();
my $lost = connect_to(AutoCommit => 0);
$lost->do("insert into dbdpg_t values (777, 'lost', 0)");
$lost->disconnect;
check($db->selectrow_array('select count(*) from dbdpg_t where id = 777'), 0);
$db->do('drop table dbdpg_t, dbdpg_c');
$db->disconnect;
