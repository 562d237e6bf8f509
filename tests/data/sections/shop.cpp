#include <vector>

namespace shop::inner {

template <typename T, int N = 2>
class Shop : public Base<T>, private Other {
public:
    explicit Shop(int size)
        : size_{size}, names_{"a", "b"}
    {
        add(size);
    }
    ~Shop() { clear(); }

    bool operator==(const Shop &other) const {
        return size_ == other.size_;
    }

    virtual auto add(int value) noexcept(true) -> decltype(value) override;

private:
    struct Node { int value; };
    int size_ = 1'000'000;
};

template <typename T, int N>
auto Shop<T, N>::add(int value) noexcept(true)
    -> decltype(value)
{
    auto visit = [&](int x) {
        return x > 0 ? '{' : '"';
    };
    for (auto &x : {1, 2}) {
        visit(x);
    }
    return R"(void no() {)"[0];
}

enum class Colour : int {
    Red,
};

} // namespace

extern "C" {
int exported(void)
{
    return 1;
}
}

TEST(Shop, Adds) {
    EXPECT_EQ(1, 1);
}
