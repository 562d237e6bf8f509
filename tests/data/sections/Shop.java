package shop;

import java.util.*;

/**
 * A shop { of things.
 */
@Entity
@Table(name = "shops}")
public class Shop<T extends Comparable<T>> extends Base implements Sells, Buys {
    private static final Map<String, Integer> PRICES = new HashMap<>() {{
        put("a", 1);
    }};
    private final char brace = '{';

    static {
        System.out.println("class Static {");
    }

    public Shop(String name) {
        super(name);
    }

    @Override
    @SuppressWarnings({"unchecked", "raw"})
    public <K> Map<K, List<T>> add(
            final K key,
            @Nullable T value) throws IOException, ShopException {
        if (value == null) {
            return null;
        } else {
            synchronized (this) {
                items.forEach(item -> {
                    System.out.println(item);
                });
            }
        }
        Runnable task = new Runnable() {
            @Override
            public void run() {
                String text = """
                    void no() {
                    """;
            }
        };
        return null;
    }

    int size() { return 1; }

    abstract void none();

    interface Inner {
        default void go() {
        }
    }

    enum Colour {
        RED, GREEN;

        Colour next()
        {
            return RED;
        }
    }

    record Point(int x, int y) {
        Point {
            x = 1;
        }
    }
}
