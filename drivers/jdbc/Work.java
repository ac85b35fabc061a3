import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import org.postgresql.PGConnection;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

/** JDBC at its defaults: a statement is prepared by name at its fifth execution. */
public class Work {
    static final String WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash";

    interface Action { void run() throws Exception; }

    static Connection connect(String... options) throws SQLException {
        var environment = System.getenv();
        var properties = new Properties();
        properties.setProperty("user", environment.get("PGUSER"));
        properties.setProperty("password", environment.get("PGPASSWORD"));
        properties.setProperty("sslmode", environment.get("PGSSLMODE"));
        if (environment.containsKey("PGSSLROOTCERT")) properties.setProperty("sslrootcert", environment.get("PGSSLROOTCERT"));
        for (int n = 0; n < options.length; n += 2) properties.setProperty(options[n], options[n + 1]);
        return DriverManager.getConnection(
            "jdbc:postgresql://" + environment.get("PGHOST") + ":" + environment.get("PGPORT") + "/" + environment.get("PGDATABASE"), properties);
    }

    static void check(Object seen, Object wanted) {
        if (!Objects.deepEquals(seen, wanted)) throw new AssertionError(wanted + " wanted, not " + seen);
    }

    static void fails(String code, Action action) throws Exception {
        try {
            action.run();
        } catch (SQLException error) {
            if (!code.equals(error.getSQLState())) throw new AssertionError(code + " wanted, not " + error.getSQLState(), error);
            return;
        }
        throw new AssertionError("no " + code);
    }

    static Object value(Connection db, String sql, Object... parameters) throws SQLException {
        try (var statement = db.prepareStatement(sql)) {
            return value(statement, parameters);
        }
    }

    static Object value(PreparedStatement statement, Object... parameters) throws SQLException {
        for (int n = 0; n < parameters.length; n++) statement.setObject(n + 1, parameters[n]);
        try (var rows = statement.executeQuery()) {
            rows.next();
            return rows.getObject(1);
        }
    }

    static void run(Connection db, String sql) throws SQLException {
        try (var statement = db.createStatement()) {
            statement.execute(sql);
        }
    }

    static void types(Connection db) throws Exception {
        var bytes = new byte[256];
        for (int n = 0; n < 256; n++) bytes[n] = (byte) n;
        Object[][] values = {
            {"int4", -5}, {"int8", 1L << 62}, {"float8", 0.1}, {"numeric", new java.math.BigDecimal("12345678901234567890.123456789")},
            {"text", WORD}, {"bytea", bytes}, {"bool", true}, {"uuid", UUID.fromString("12345678-1234-5678-1234-567812345678")},
            {"timestamp", Timestamp.valueOf("2024-02-29 12:30:01.123456")}, {"date", java.sql.Date.valueOf("2024-02-29")},
        };
        for (var pair : values) {
            try (var statement = db.prepareStatement("select ?::" + pair[0])) {
                // Text first; in binary once the server has prepared it.
                for (int turn = 0; turn < 12; turn++) {
                    check(value(statement, pair[1]), pair[1]);
                    statement.setNull(1, Types.NULL);
                    try (var rows = statement.executeQuery()) {
                        rows.next();
                        check(rows.getObject(1), null);
                    }
                }
            }
        }
        try (var statement = db.prepareStatement("select ?::text[], ?::int[]")) {
            for (int turn = 0; turn < 12; turn++) {
                String[] texts = {WORD, "", null, "NULL", "{,}"};
                statement.setArray(1, db.createArrayOf("text", texts));
                statement.setArray(2, db.createArrayOf("int4", new Integer[] {1, null, 3}));
                try (var rows = statement.executeQuery()) {
                    rows.next();
                    check(rows.getArray(1).getArray(), texts);
                    check(rows.getArray(2).getArray(), new Integer[] {1, null, 3});
                }
            }
        }
        check(db.getMetaData().getDatabaseMajorVersion() > 8, true);
    }

    static void transactions(Connection db) throws Exception {
        run(db, "set client_min_messages = warning; drop table if exists jdbc_t; create table jdbc_t (id int primary key, word text, amount numeric)");
        db.setAutoCommit(false);
        try (var insert = db.prepareStatement("insert into jdbc_t values (?, ?, ?)")) {
            for (int turn = 0; turn < 2; turn++) {
                for (int id = 0; id < 12; id++) insert(insert, id, WORD, id);
                if (turn == 0) db.rollback();
            }
            var before = db.setSavepoint("before");
            fails("23505", () -> insert(insert, 3, "twice", 0));
            fails("25P02", () -> run(db, "select 1"));
            db.rollback(before);
            check(update(db, "update jdbc_t set amount = amount + 1 where id = ?", 3), 1);
            db.commit();
        }
        db.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        check(value(db, "select amount::int from jdbc_t where id = 3"), 4);
        db.commit();
        db.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        db.setAutoCommit(true);
    }

    static int insert(PreparedStatement insert, int id, String word, int amount) throws SQLException {
        insert.setInt(1, id);
        insert.setString(2, word);
        insert.setInt(3, amount);
        return insert.executeUpdate();
    }

    static int update(Connection db, String sql, Object... parameters) throws SQLException {
        try (var statement = db.prepareStatement(sql)) {
            for (int n = 0; n < parameters.length; n++) statement.setObject(n + 1, parameters[n]);
            return statement.executeUpdate();
        }
    }

    static void mistakes(Connection db) throws Exception {
        try (var divide = db.prepareStatement("select 1 / ?::int"); var insert = db.prepareStatement("insert into jdbc_t values (?, ?, ?)")) {
            for (int turn = 0; turn < 12; turn++) {
                fails("23505", () -> insert(insert, 1, "twice", 0));
                fails("42601", () -> run(db, "selec 1"));
                fails("22012", () -> value(divide, 0));
                check(value(divide, 1), 1);
                fails("42P01", () -> value(db, "select * from jdbc_none"));
                fails("22012", () -> run(db, "insert into jdbc_t values (500, 'a', 0); select 1/0; select 2"));
            }
        }
        check(value(db, "select count(*) from jdbc_t where id = 500"), 0L);
    }

    static void batches(Connection db) throws Exception {
        try (var insert = db.prepareStatement("insert into jdbc_t values (?, ?, 0) returning id", Statement.RETURN_GENERATED_KEYS)) {
            for (int turn = 0; turn < 4; turn++) {
                for (int id = 0; id < 500; id++) {
                    insert.setInt(1, 1000 + 500 * turn + id);
                    insert.setString(2, WORD);
                    insert.addBatch();
                }
                check(insert.executeBatch().length, 500);
            }
        }
        try (var insert = db.prepareStatement("insert into jdbc_t values (?, 'x', 0)")) {
            for (int id = 3100; id > 2900; id--) {
                insert.setInt(1, id);
                insert.addBatch();
            }
            try {
                insert.executeBatch();
                throw new AssertionError("no error");
            } catch (BatchUpdateException error) {
                check(error.getSQLState(), "23505");
            }
        }
        check(value(db, "select count(*) from jdbc_t where id >= 1000"), 2000L);
        run(db, "delete from jdbc_t where id >= 1000");
    }

    static void copies(Connection db) throws Exception {
        run(db, "drop table if exists jdbc_c; create table jdbc_c (id int, word text)");
        var copies = db.unwrap(PGConnection.class).getCopyAPI();
        var lines = new StringBuilder();
        for (int n = 0; n < 6000; n++) lines.append(n).append('\t').append(n % 2 == 1 ? WORD.replace("\\", "\\\\") : "\\N").append('\n');
        check(copies.copyIn("copy jdbc_c from stdin", new StringReader(lines.toString())), 6000L);
        var out = new ByteArrayOutputStream();
        check(copies.copyOut("copy (select * from jdbc_c order by id) to stdout", out), 6000L);
        check(out.toString(StandardCharsets.UTF_8).equals(lines.toString()), true);
        for (int turn = 0; turn < 3; turn++) {
            fails("22P02", () -> copies.copyIn("copy jdbc_c (id) from stdin", new StringReader("no number\n")));
            var given = copies.copyIn("copy jdbc_c (id) from stdin");
            given.writeToCopy("1\n".getBytes(), 0, 2);
            given.cancelCopy();
            var taken = copies.copyOut("copy jdbc_c to stdout");
            while (taken.readFromCopy() != null) {}
            check(value(db, "select count(*) from jdbc_c"), 6000L);
        }
    }

    /** By way of the function call message. */
    static void largeObjects(Connection db) throws Exception {
        db.setAutoCommit(false);
        var manager = db.unwrap(PGConnection.class).getLargeObjectAPI();
        var part = new byte[16384];
        for (int n = 0; n < part.length; n++) part[n] = (byte) n;
        long oid = manager.createLO(LargeObjectManager.READ | LargeObjectManager.WRITE);
        LargeObject object = manager.open(oid, LargeObjectManager.READ | LargeObjectManager.WRITE);
        for (int n = 0; n < 16; n++) object.write(part);
        object.seek(part.length);
        check(object.read(part.length), part);
        check(object.size(), 16 * part.length);
        object.close();
        manager.delete(oid);
        db.commit();
        db.setAutoCommit(true);
    }

    static void bigResults(Connection db) throws Exception {
        try (var statement = db.createStatement(); var rows = statement.executeQuery("select g, repeat('x', 500) from generate_series(1, 20000) g")) {
            int count = 0;
            while (rows.next()) count++;
            check(count, 20000);
        }
        db.setAutoCommit(false);
        for (int turn = 0; turn < 7; turn++) {
            // A portal with a limit of rows, which other statements come in between of.
            try (var statement = db.prepareStatement("select g from generate_series(1, ?) g")) {
                statement.setFetchSize(77);
                statement.setInt(1, 2000);
                long sum = 0;
                try (var rows = statement.executeQuery()) {
                    while (rows.next()) {
                        sum += rows.getInt(1);
                        if (rows.getInt(1) % 500 == 0) check(value(db, "select 1"), 1);
                    }
                }
                check(sum, 2001000L);
            }
        }
        db.commit();
        db.setAutoCommit(true);
        check(((String) value(db, "select ?::text", "y".repeat(2_000_000))).length(), 2_000_000);
    }

    static void cancels(Connection db) throws Exception {
        for (int turn = 0; turn < 2; turn++) {
            try (var statement = db.prepareStatement("select pg_sleep(20)")) {
                var canceller = new Thread(() -> {
                    try {
                        Thread.sleep(150);
                        statement.cancel();
                    } catch (Exception error) {
                        error.printStackTrace();
                    }
                });
                canceller.start();
                fails("57014", statement::executeQuery);
                canceller.join();
                statement.setQueryTimeout(1);
                fails("57014", statement::executeQuery);
            }
            check(value(db, "select 1"), 1);
        }
    }

    static void schemaChanges(Connection db) throws Exception {
        try (var statement = db.prepareStatement("select * from jdbc_t where id = ?")) {
            for (int turn = 0; turn < 8; turn++) value(statement, 5);
            run(db, "alter table jdbc_t add column extra int default 7");
            // Outside of a transaction the driver prepares it anew by itself.
            statement.setInt(1, 5);
            try (var rows = statement.executeQuery()) {
                rows.next();
                check(rows.getInt("extra"), 7);
            }
        }
    }

    static void sessions(Connection db) throws Exception {
        run(db, "listen jdbc_channel");
        run(db, "create temp table jdbc_temp (x int)");
        value(db, "select 1 from (select pg_advisory_lock(84)) l");
        try (var other = connect()) {
            check(value(other, "select pg_try_advisory_lock(84)"), false);
            value(other, "select 1 from (select pg_notify('jdbc_channel', ?)) n", WORD);
        }
        var notices = db.unwrap(PGConnection.class).getNotifications(10_000);
        check(notices[0].getParameter(), WORD);
        check(update(db, "insert into jdbc_temp values (1)"), 1);
        run(db, "unlisten *");
        value(db, "select pg_advisory_unlock(84)");
        run(db, "drop table jdbc_temp");
        db.setReadOnly(true);
        fails("25006", () -> { db.setAutoCommit(false); try { run(db, "delete from jdbc_t"); } finally { db.rollback(); db.setAutoCommit(true); } });
        db.setReadOnly(false);
        check(db.isValid(5), true);
    }

    static void manyAtOnce() throws Exception {
        var threads = Executors.newFixedThreadPool(8);
        var futures = new ArrayList<Future<?>>();
        for (int n = 0; n < 8; n++) {
            int number = n;
            futures.add(threads.submit(() -> {
                try (var db = connect(); var twice = db.prepareStatement("select ?::int * 2"); var own = db.prepareStatement("select ?::int + " + number)) {
                    for (int turn = 0; turn < 20; turn++) {
                        db.setAutoCommit(false);
                        check(value(twice, number), 2 * number);
                        update(db, "update jdbc_t set amount = amount + 1 where id = ?", number);
                        db.commit();
                        db.setAutoCommit(true);
                        check(value(own, turn), turn + number);
                    }
                }
                return null;
            }));
        }
        for (var future : futures) future.get();
        threads.shutdown();
    }

    static void reconnects() throws Exception {
        for (int number = 0; number < 10; number++) {
            try (var db = connect(); var statement = db.prepareStatement("select ?::int")) {
                for (int turn = 0; turn < 8; turn++) check(value(statement, number), number);
            }
        }
        try (var doomed = connect()) {
            fails("57P01", () -> value(doomed, "select pg_terminate_backend(pg_backend_pid())"));
            check(doomed.isValid(5), false);
        }
        try (var db = connect()) {
            var lost = connect();
            lost.setAutoCommit(false);
            run(lost, "insert into jdbc_t values (777, 'lost', 0)");
            lost.abort(Runnable::run);
            check(value(db, "select count(*) from jdbc_t where id = 777"), 0L);
        }
    }

    static void all(String... options) throws Exception {
        try (var db = connect(options)) {
            types(db);
            transactions(db);
            mistakes(db);
            batches(db);
            copies(db);
            largeObjects(db);
            bigResults(db);
            schemaChanges(db);
        }
    }

    public static void main(String[] arguments) throws Exception {
        // Bound in one simple query; bound unnamed; prepared by name from the first run on; and then the defaults.
        all("preferQueryMode", "extendedForPrepared");
        all("prepareThreshold", "0", "reWriteBatchedInserts", "true");
        all("prepareThreshold", "1");
        all();
        try (var db = connect()) {
            cancels(db);
            sessions(db);
        }
        manyAtOnce();
        reconnects();
        try (var db = connect()) {
            run(db, "drop table jdbc_t, jdbc_c");
        }
    }
}
