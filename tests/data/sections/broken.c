#ifdef WIDE
int first(wchar_t *a) {
#else
int first(char *a) {
#endif
    if (a) {
        return 1;
    }
    return 0;
}

static int second(int a)
{
    switch (a) {
    case 1:
        return 2;
    }
out:
    return a;
}

void third(void) {
    second(1);
}
