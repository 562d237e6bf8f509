#include <stdio.h>

#define EACH(item, list) \
    for (item = list; item; item = item->next) {
#define SQUARE(x) ((x) * (x))

/* int no(void) { */
struct item {
    char *name;
    union {
        int a;
    } value;
};

typedef struct {
    int width;
} box_t;

enum colour { RED, GREEN };

static const struct item items[] = {
    { "a}", { 1 } },
};

/* The size
 * of it. */
static inline unsigned long
size_of(const struct item *item,
        int (*get)(int))
{
    if (item) {
        printf("%c{", '}');
    } else if (get(1)) {
        return 2;
    }
    list_for_each(item, get) {
        return 1;
    }
    return 0;
}

struct item *find(int id) {
    do {
        id--;
    } while (id);
out:
    return NULL;
}

int one(void) { return 1; }

static void __attribute__((noreturn)) __stop(void)
{
    for (;;)
        ;
}

int declared(int a);

#ifdef WIDE
int main(int argc, wchar_t **argv)
#else
int main(int argc, char **argv)
#endif
{
    return SQUARE(2);
}
