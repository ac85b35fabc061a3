"""Django on psycopg: migrations made and run, queries, server-side cursors, both ways to bind parameters."""

import importlib
import os
import sys
import tempfile
import threading
from decimal import Decimal
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"

MODELS = '''
from django.contrib.postgres.fields import ArrayField
from django.db import models

class Author(models.Model):
    name = models.CharField(max_length=100, unique=True)
    money = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    tags = ArrayField(models.CharField(max_length=100), null=True)
    more = models.JSONField(null=True)
    raw = models.BinaryField(null=True)
    born = models.DateTimeField(auto_now_add=True)

class Book(models.Model):
    title = models.CharField(max_length=100)
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
'''


def database(**options):
    environment = os.environ
    tls = {"sslmode": environment["PGSSLMODE"]}
    if environment.get("PGSSLROOTCERT"):
        tls["sslrootcert"] = environment["PGSSLROOTCERT"]
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": environment["PGHOST"],
        "PORT": environment["PGPORT"],
        "USER": environment["PGUSER"],
        "PASSWORD": environment.get("PGPASSWORD", ""),
        "NAME": environment["PGDATABASE"],
        "OPTIONS": {**tls, **options},
    }


def configure(folder):
    application = folder / "django_shop"
    application.mkdir()
    (application / "__init__.py").write_text("")
    (application / "models.py").write_text(MODELS)
    sys.path.insert(0, str(folder))
    settings.configure(
        # The second is bound by the server: prepared statements instead of text that the client puts together.
        DATABASES={"default": database(), "bound": database(server_side_binding=True)},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django_shop"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        SECRET_KEY="of no use",
    )
    django.setup()
    return application


def migrate(application):
    call_command("makemigrations", "django_shop", verbosity=0)
    call_command("migrate", verbosity=0)
    models = application / "models.py"
    models.write_text(MODELS.replace("title = ", "pages = models.IntegerField(default=7, db_index=True)\n    title = "))
    from django.apps import apps

    for module in [name for name in sys.modules if name.startswith("django_shop")]:
        del sys.modules[module]
    importlib.invalidate_caches()
    apps.all_models["django_shop"].clear()
    apps.clear_cache()
    apps.app_configs["django_shop"].import_models()
    call_command("makemigrations", "django_shop", verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("migrate", "django_shop", "0001", verbosity=0)
    call_command("migrate", verbosity=0)
    return apps.get_model("django_shop", "Author"), apps.get_model("django_shop", "Book")


def raises(kind, work):
    try:
        work()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def queries(alias, author_model, book_model):
    from django.db import DataError, IntegrityError, ProgrammingError, connections, transaction
    from django.db.models import Count, F, Sum

    connection = connections[alias]
    authors, books = author_model.objects.using(alias), book_model.objects.using(alias)
    with transaction.atomic(using=alias):
        made = authors.bulk_create(
            author_model(name=f"{WORD} {n}", money=Decimal(n) / 4, tags=["a", WORD], more={"n": [n, None]},
                         raw=bytes(range(256)))
            for n in range(60)
        )
        books.bulk_create((book_model(title=f"{a.pk}.{b}", author=a) for a in made for b in range(3)), batch_size=50)
    for _ in range(8):
        seen = list(authors.filter(money__lt=5, tags__contains=[WORD]).prefetch_related("books").order_by("pk"))
        assert len(seen) == 20 and all(len(author.books.all()) == 3 for author in seen)
        assert seen[3].more == {"n": [3, None]} and bytes(seen[3].raw) == bytes(range(256))
        assert authors.filter(more__n__contains=[3]).count() == 1
    for _ in range(6):
        with transaction.atomic(using=alias):
            def twice():
                with transaction.atomic(using=alias):
                    authors.create(name=f"{WORD} 1")
            raises(IntegrityError, twice)
            authors.filter(name=f"{WORD} 2").update(money=F("money") + 1)
        with connection.cursor() as cursor:
            raises(ProgrammingError, lambda: cursor.execute("selec 1"))
            raises(DataError, lambda: cursor.execute("select 1 / %s::int", [0]))
    assert authors.get(name=f"{WORD} 2").money == Decimal("6.5")

    def undone():
        with transaction.atomic(using=alias):
            authors.all().delete()
            raise KeyError("so it is rolled back")

    raises(KeyError, undone)
    assert books.aggregate(Count("id"), Sum("pages")) == {"id__count": 180, "pages__sum": 1260}
    # A server-side cursor: WITH HOLD outside of a transaction, so it is the session's; inside of one it is the transaction's.
    with transaction.atomic(using=alias):
        assert sum(1 for _ in books.iterator(chunk_size=37)) == 180
    assert sum(1 for _ in books.iterator(chunk_size=37)) == 180
    with connection.cursor() as cursor:
        cursor.execute("select g, repeat('x', 500) from generate_series(1, 20000) g")
        assert len(cursor.fetchall()) == 20000
        assert "django_shop_book" in connection.introspection.table_names(cursor)
    with transaction.atomic(using=alias):
        locked = authors.select_for_update(skip_locked=True).order_by("pk").first()
        locked.delete()
    authors.all().delete()
    failures = []

    def work(number):
        try:
            for turn in range(10):
                with transaction.atomic(using=alias):
                    author = authors.create(name=f"{number}.{turn}", tags=[WORD])
                    books.create(title=WORD, author=author)
                assert books.filter(author__name=f"{number}.{turn}").count() == 1
        except BaseException as error:
            failures.append(repr(error))
        finally:
            connection_of_this_thread = connections[alias]
            connection_of_this_thread.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    authors.all().delete()
    connection.close()
    assert authors.count() == 0, "connected again"


def main():
    with tempfile.TemporaryDirectory() as folder:
        application = configure(Path(folder))
        from django.db import connection

        author_model, book_model = migrate(application)
        for alias in ["default", "bound"]:
            queries(alias, author_model, book_model)
        call_command("migrate", "django_shop", "zero", verbosity=0)
        for other in ["sessions", "auth", "contenttypes"]:
            call_command("migrate", other, "zero", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("drop table django_migrations")


main()
