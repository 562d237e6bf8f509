package shop

import kotlin.math.*

/** fun no() { */
@Serializable
data class Point(val x: Int, val y: Int)

sealed class Shop<T : Any>(
    private val name: String,
) : Base(name), Sells {

    init {
        println("}")
    }

    constructor(a: Int) : this(a.toString()) {
        println('{')
    }

    val size: Int
        get() = 1

    override suspend fun <K> add(
        key: K,
        block: (K) -> Unit,
    ): Map<K, List<T>> {
        items.forEach { item ->
            when (item) {
                1 -> { block(key) }
                else -> {}
            }
        }
        return emptyMap()
    }

    fun area(x: Int) = x *
        x

    companion object {
        fun create(): Shop<Int> = TODO()
    }

    interface Inner {
        fun go()
    }
}

fun String.shout(): String {
    return """
        fun raw() { "
    """
}

object Single {
    fun `is fine`() {
    }
}
