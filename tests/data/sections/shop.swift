import Foundation

/* func no() { */
@available(iOS 13, *)
public final class Shop<T>: Base, Sells where T: Equatable {
    @State private var count = 0

    var size: Int {
        return count
    }

    init?(name: String) {
        guard name.isEmpty else { return nil }
    }

    deinit {
        print("}")
    }

    @discardableResult
    func add<K>(
        _ key: K,
        then done: @escaping (K) -> Void
    ) throws -> [String: Int] where K: Hashable {
        items.forEach { item in
            if item > 0 {
                done(key)
            }
        }
        return [:]
    }

    static func == (a: Shop, b: Shop) -> Bool { true }

    class func make() -> Shop {
        """
        func text() {
        """
    }
}

extension Shop: CustomStringConvertible {
    subscript(index: Int) -> Int {
        get { 1 }
    }
}

protocol Sells {
    func sell()
}

enum Colour: Int {
    case red
    indirect enum Deep { case one }
}

struct Body: View {
    var body: some View {
        Text("{")
    }
}
