package shop

// def no() = {
@deprecated("x")
class Shop[T <: Base](name: String)(implicit c: Context) extends Base {
  private val open = '{'

  def add[K](
      key: K,
      value: String = "}"
  ): Map[K, T] = {
    items.map { item =>
      item
    }
  }

  def one = 1

  def chain(x: Int): Int =
    x match {
      case 1 => 2
      case _ => 3
    }

  case class Item(name: String)

  object Inner {
    def +(other: Int) = """
def text() = {
"""
  }
}

trait Sells:
  def sell(): Int

  def twice: Int =
    sell() * 2
end Sells

object Main extends App {
  println(1)
}
