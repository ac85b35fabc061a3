# ActiveRecord at its defaults: every query is a named statement, and migrations take a lock of the session.
require 'active_record'
require 'pg'

WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"

# Host, port, user, password, database and TLS come from the PG* environment.
ActiveRecord::Base.establish_connection(adapter: 'postgresql', pool: 8)
ActiveRecord::Migration.verbose = false

class Author < ActiveRecord::Base
  self.table_name = 'activerecord_authors'
  has_many :books, dependent: :destroy
  validates :name, uniqueness: true
end

class Book < ActiveRecord::Base
  self.table_name = 'activerecord_books'
  belongs_to :author
end

class CreateAll < ActiveRecord::Migration[6.1]
  def change
    create_table :activerecord_authors do |t|
      t.string :name, null: false, index: { unique: true }
      t.decimal :money, precision: 20, scale: 4
      t.string :tags, array: true, default: []
      t.jsonb :more
      t.binary :raw
      t.timestamps
    end
    create_table :activerecord_books do |t|
      t.string :title
      t.references :author, foreign_key: { to_table: :activerecord_authors }
    end
  end
end

class AddPages < ActiveRecord::Migration[6.1]
  def change
    add_column :activerecord_books, :pages, :integer, default: 7
    add_index :activerecord_books, :pages, algorithm: :concurrently
  end
  disable_ddl_transaction!
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

def migrate(direction)
  list = [CreateAll.new('CreateAll', 1), AddPages.new('AddPages', 2)]
  ActiveRecord::Migrator.new(direction, list, ActiveRecord::SchemaMigration).migrate
  [Author, Book].each(&:reset_column_information)
end

def work
  bytes = (0..255).to_a.pack('C*')
  Author.transaction do
    40.times do |n|
      author = Author.create!(name: "#{WORD} #{n}", money: n / 4r, tags: ['a', WORD], more: { 'n' => [n, nil] }, raw: bytes)
      3.times { |b| author.books.create!(title: "#{n}.#{b}") }
    end
  end
  8.times do
    seen = Author.where('money < ?', 5).where(Author.arel_table[:id].gt(0)).includes(:books).order(:id).to_a
    check [seen.size, seen.sum { |author| author.books.size }], [20, 60]
    check [seen[3].tags, seen[3].more, seen[3].raw], [['a', WORD], { 'n' => [3, nil] }, bytes]
    check Author.find_by(name: "#{WORD} 7").money, 7 / 4r
  end
  7.times do
    Author.transaction do
      fails(ActiveRecord::RecordNotUnique) { Author.transaction(requires_new: true) { Author.insert!({ name: "#{WORD} 1", created_at: Time.now, updated_at: Time.now }) } }
      Author.find_by!(name: "#{WORD} 2").increment!(:money)
    end
    fails(ActiveRecord::StatementInvalid) { Author.connection.execute('selec 1') }
    fails(ActiveRecord::StatementInvalid) { Author.where('1 / (id - id) = 1').to_a }
    Author.transaction do
      Author.delete_all rescue nil
      raise ActiveRecord::Rollback
    end
  end
  check Book.sum(:pages), 840
  check Author.find_by(name: "#{WORD} 2").money, 7.5r
  sum = 0
  Book.find_each(batch_size: 17) { |book| sum += book.pages }
  check sum, 840
  author = Author.lock.first
  author.with_lock { author.update!(name: 'renamed') }
  # DDL under prepared statements: outside of a transaction it prepares anew.
  Author.connection.add_column :activerecord_authors, :extra, :integer, default: 7
  check Author.find_by(name: 'renamed').name, 'renamed'
  Author.reset_column_information
  check Author.first.extra, 7
  Author.connection.remove_column :activerecord_authors, :extra
  Author.reset_column_information
  check Author.connection.select_value("select count(*) from generate_series(1, 20000)"), 20_000
  fails(ActiveRecord::QueryCanceled) do
    Author.transaction do
      Author.connection.execute("set local statement_timeout = '100ms'")
      Author.connection.execute('select pg_sleep(20)')
    end
  end
  Author.connection.raw_connection.exec('select 1')
  Author.connection.reconnect!
  check Author.count, 40
end

def many_at_once
  Author.connection_pool.release_connection
  threads = Array.new(8) do |number|
    Thread.new do
      10.times do |turn|
        ActiveRecord::Base.connection_pool.with_connection do
          Author.transaction do
            author = Author.create!(name: "#{number}.#{turn}")
            author.books.create!(title: WORD)
          end
          check Book.joins(:author).where(activerecord_authors: { name: "#{number}.#{turn}" }).count, 1
        end
      end
    end
  end
  threads.each(&:join)
end

Thread.report_on_exception = false
ActiveRecord::SchemaMigration.create_table
migrate :up
work
many_at_once
Author.destroy_all
migrate :down
ActiveRecord::Base.connection.execute('drop table if exists schema_migrations, ar_internal_metadata')
ActiveRecord::Base.connection_pool.disconnect!
