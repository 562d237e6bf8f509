# def no
module Inner
  class Shop < Base
    attr_reader :name

    # Makes one.
    def initialize(name,
                   price: 1)
      @name = name # end
    end

    def self.create(
      name
    )
      new(name)
    rescue ArgumentError
      nil
    ensure
      puts "end"
    end

    def each
      items.each do |item|
        if item
          yield item
        end
      end
    end

    def one; 1; end

    def two = 2

    def empty?
      sql = <<~SQL
def in_heredoc
      SQL
      sql.empty?
    end

    class << self
      def count
        1
      end
    end

    private def hidden(x)
      x
    end
  end
end

puts 1
