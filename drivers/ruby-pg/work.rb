# Ruby's pg: libpq with simple, unnamed and named statements, and pipeline mode.
require 'pg'

WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"

# Host, port, user, password, database and TLS come from the PG* environment.
def connect
  PG.connect.tap { |db| db.type_map_for_results = PG::BasicTypeMapForResults.new(db) }
end

def check(seen, wanted)
  raise "#{wanted.inspect} wanted, not #{seen.inspect}" unless seen == wanted
end

def fails(kind)
  yield
rescue kind
  nil
else
  raise "no #{kind}"
end

def types(db)
  values = { 'int2' => 32_767, 'int4' => -5, 'int8' => 2**62, 'float8' => 0.1, 'text' => WORD, 'bool' => true }
  12.times do |turn|
    values.each do |kind, value|
      check db.exec_params("select $1::#{kind}", [value.to_s]).getvalue(0, 0), value
      db.prepare("type #{kind}", "select $1::#{kind}") if turn.zero?
      check db.exec_prepared("type #{kind}", [value.to_s]).getvalue(0, 0), value
      check db.exec_prepared("type #{kind}", [nil]).getvalue(0, 0), nil
    end
    check db.exec_params('select $1::int[]', ['{1,NULL,3}']).getvalue(0, 0), [1, nil, 3]
    bytes = (0..255).to_a.pack('C*')
    check db.exec_params('select $1::bytea', [{ value: bytes, format: 1 }], 1).getvalue(0, 0), bytes
  end
  check db.describe_prepared('type int4').ftype(0), 23
  db.exec('deallocate "type int4"')
  fails(PG::InvalidSqlStatementName) { db.exec_prepared('type int4', ['1']) }
end

def transactions(db)
  db.exec('set client_min_messages = warning; drop table if exists rubypg_t; create table rubypg_t (id int primary key, word text, amount numeric)')
  db.prepare('insert', 'insert into rubypg_t values ($1, $2, $3)')
  fails(KeyError) do
    db.transaction do
      12.times { |id| db.exec_prepared('insert', [id, WORD, id]) }
      raise KeyError
    end
  end
  check db.exec('select count(*) from rubypg_t').getvalue(0, 0), 0
  db.transaction do
    12.times { |id| db.exec_prepared('insert', [id, WORD, id]) }
    db.exec('savepoint before')
    fails(PG::UniqueViolation) { db.exec_prepared('insert', [3, 'twice', 0]) }
    fails(PG::InFailedSqlTransaction) { db.exec('select 1') }
    db.exec('rollback to savepoint before')
    db.exec_params('update rubypg_t set amount = amount + 1 where id = $1', [3])
  end
  check db.exec('select amount::int from rubypg_t where id = 3').getvalue(0, 0), 4
end

def mistakes(db)
  7.times do
    fails(PG::UniqueViolation) { db.exec_prepared('insert', [1, 'twice', 0]) }
    fails(PG::SyntaxError) { db.exec('selec 1') }
    fails(PG::SyntaxError) { db.prepare('broken', 'selec $1') }
    fails(PG::DivisionByZero) { db.exec_params('select 1 / $1::int', [0]) }
    fails(PG::UndefinedTable) { db.exec('select * from rubypg_none') }
    fails(PG::DuplicatePstatement) { db.prepare('insert', 'select 1') }
    fails(PG::DivisionByZero) { db.exec("insert into rubypg_t values (500, 'a', 0); select 1/0") }
  end
  check db.exec('select count(*) from rubypg_t where id = 500').getvalue(0, 0), 0
end

def results(db)
  seen = []
  while (result = db.get_result)
    seen << result.result_status
    result.clear
    break if seen.last == PG::PGRES_PIPELINE_SYNC
  end
  seen
end

def pipelines(db)
  db.enter_pipeline_mode
  3.times do
    20.times { |n| db.send_query_params('select $1::int', [n.to_s]) }
    db.pipeline_sync
    20.times do |n|
      check db.get_result.getvalue(0, 0), n
      check db.get_result, nil
    end
    check db.get_result.result_status, PG::PGRES_PIPELINE_SYNC
    # What follows a mistake is skipped, up to the Sync.
    db.send_query_params('select 1', [])
    db.send_query_params('select 1 / $1::int', ['0'])
    db.send_query_params('select 2', [])
    db.pipeline_sync
    seen = []
    until seen.last == PG::PGRES_PIPELINE_SYNC
      result = db.get_result
      seen << result.result_status if result
    end
    check seen, [PG::PGRES_TUPLES_OK, PG::PGRES_FATAL_ERROR, PG::PGRES_PIPELINE_ABORTED, PG::PGRES_PIPELINE_SYNC]
  end
  db.exit_pipeline_mode
  check db.exec('select 1').getvalue(0, 0), 1
end

def copies(db)
  db.exec('drop table if exists rubypg_c; create table rubypg_c (id int, word text)')
  coder = PG::TextEncoder::CopyRow.new
  db.copy_data('copy rubypg_c from stdin', coder) { 6000.times { |n| db.put_copy_data([n.to_s, n.odd? ? WORD : nil]) } }
  rows = []
  db.copy_data('copy (select * from rubypg_c order by id) to stdout', PG::TextDecoder::CopyRow.new) do
    while (row = db.get_copy_data)
      rows << row
    end
  end
  check [rows.size, rows[0], rows[1]], [6000, ['0', nil], ['1', WORD]]
  3.times do
    fails(PG::InvalidTextRepresentation) { db.copy_data('copy rubypg_c (id) from stdin') { db.put_copy_data("no number\n") } }
    fails(KeyError) { db.copy_data('copy rubypg_c (id) from stdin') { db.put_copy_data("1\n"); raise KeyError } }
    check db.exec('select count(*) from rubypg_c').getvalue(0, 0), 6000
  end
end

def large_objects(db)
  part = (0..255).to_a.pack('C*') * 64
  db.transaction do
    oid = db.lo_creat
    object = db.lo_open(oid, PG::INV_READ | PG::INV_WRITE)
    16.times { check db.lo_write(object, part), part.size }
    db.lo_lseek(object, part.size, PG::SEEK_SET)
    check db.lo_read(object, part.size), part
    check db.lo_tell(object), 2 * part.size
    db.lo_close(object)
    db.lo_unlink(oid)
  end
end

def big_results(db)
  check db.exec("select g, repeat('x', 500) from generate_series(1, 20000) g").ntuples, 20_000
  db.send_query('select g from generate_series(1, 2000) g')
  db.set_single_row_mode
  sum = 0
  db.get_result.stream_each { |row| sum += row['g'] }
  check db.get_result, nil
  check sum, 2_001_000
  db.transaction do
    db.exec('declare rubypg_cursor cursor for select g from generate_series(1, 500) g')
    check db.exec('fetch 77 from rubypg_cursor').ntuples, 77
    check db.exec('fetch all from rubypg_cursor').ntuples, 423
  end
  check db.exec_params('select $1::text', ['y' * 2_000_000]).getvalue(0, 0).size, 2_000_000
end

def cancels(db)
  2.times do
    db.send_query('select pg_sleep(20)')
    sleep 0.15
    check db.cancel, nil
    fails(PG::QueryCanceled) { db.get_last_result }
    check db.exec('select 1').getvalue(0, 0), 1
  end
end

def sessions(db)
  db.exec('listen rubypg_channel; create temp table rubypg_temp (x int); select pg_advisory_lock(81)')
  other = connect
  check other.exec('select pg_try_advisory_lock(81)').getvalue(0, 0), false
  other.exec_params("select pg_notify('rubypg_channel', $1)", [WORD])
  other.close
  check db.wait_for_notify(10) { |channel, _, payload| check [channel, payload], ['rubypg_channel', WORD] }, 'rubypg_channel'
  db.exec('insert into rubypg_temp values (1)')
  db.exec('discard all')
end

def many_at_once
  threads = Array.new(8) do |number|
    Thread.new do
      db = connect
      db.prepare('twice', 'select $1::int * 2 as twice, $2::text as turn')
      db.prepare('own', "select $1::int + #{number}")
      20.times do |turn|
        db.transaction do
          check db.exec_prepared('twice', [number, turn]).values, [[2 * number, turn.to_s]]
          db.exec_params('update rubypg_t set amount = amount + 1 where id = $1', [number])
        end
        check db.exec_prepared('own', [turn]).getvalue(0, 0), turn + number
      end
      db.close
    end
  end
  threads.each(&:join)
end

def reconnects
  10.times do |number|
    db = connect
    db.prepare('n', 'select $1::int')
    6.times { check db.exec_prepared('n', [number]).getvalue(0, 0), number }
    db.close
  end
  db = connect
  fails(PG::Error) { db.exec('select pg_terminate_backend(pg_backend_pid())') }
  db.reset
  check db.exec('select 1').getvalue(0, 0), 1
  lost = connect
  lost.exec("begin; insert into rubypg_t values (777, 'lost', 0)")
  lost.close
  check db.exec('select count(*) from rubypg_t where id = 777').getvalue(0, 0), 0
  db.close
end

Thread.report_on_exception = false
db = connect
types db
transactions db
mistakes db
pipelines db
copies db
large_objects db
big_results db
cancels db
db.prepare('word', 'select word from rubypg_t where id = $1')
6.times { db.exec_prepared('word', [5]) }
db.exec('alter table rubypg_t alter column amount type float8')
check db.exec_prepared('word', [5]).getvalue(0, 0), WORD
sessions db
db.close
many_at_once
reconnects
db = connect
db.exec('drop table rubypg_t, rubypg_c')
db.close
